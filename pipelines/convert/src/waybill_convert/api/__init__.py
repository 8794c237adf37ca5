"""The pipeline's HTTP API, one module per group of routes; `api_part` puts them together."""
