"""What the janitor leaves behind for others: its runs and their numbers, read by the command line and the metrics."""
