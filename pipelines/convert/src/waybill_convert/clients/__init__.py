"""Clients of the gateway: `gateway` has documents converted, `page_renderer` has pages drawn."""
