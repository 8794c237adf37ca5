"""Waybill's HTTP API: a process that answers requests and keeps nothing but a connection to Postgres."""
