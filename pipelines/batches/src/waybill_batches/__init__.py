"""The batches pipeline: one ZIP of mixed files in, the data of each file and one summary out."""
