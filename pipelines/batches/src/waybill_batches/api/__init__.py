"""`/api/batches`."""
