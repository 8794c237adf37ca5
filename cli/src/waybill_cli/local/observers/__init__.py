"""The programs that `waybill up --observe` runs beside the services, to look at them: Prometheus and Jaeger."""
