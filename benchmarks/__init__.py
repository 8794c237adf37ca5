"""Measures Waybill side by side with its peers, in one run, on one Postgres server that really writes to disk."""
