"""Waybill on one machine: the embedded Postgres, and the supervisor behind `waybill up`."""
