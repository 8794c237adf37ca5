"""The peers' programs. They run in an environment of their own (`benchmarks/requirements.lock`) without Waybill."""
