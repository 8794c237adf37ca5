"""Waybill's HTTP API and its pages. The process is stateless: everything is in Postgres and the storage."""
