"""Worker pools: what may be asked for, and the objects and the status that follow from it. All of it pure."""
