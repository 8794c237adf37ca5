"""Clients of other services: the gateway, which converts documents and draws their pages."""
