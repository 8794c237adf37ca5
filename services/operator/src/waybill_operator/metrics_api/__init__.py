"""The external metrics API: `waybill_workers_wanted` for autoscalers, with nothing else installed in the cluster."""
