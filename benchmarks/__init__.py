"""How fast is it? Measured side by side in one run, on one Postgres that really writes to disk."""
