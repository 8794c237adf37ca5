"""The pages about batches, their words and scripts."""
