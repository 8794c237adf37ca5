"""How fast is it? Ratios measured side by side in one run, on one Postgres that really writes to disk."""
