"""Waybill's operator: worker pools, the external metrics API, and leases of pods that are gone."""
