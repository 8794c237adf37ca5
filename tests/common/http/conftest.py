"""Both servers, over real HTTP."""

from support.api_fixtures import api, folder, gateway, serve

__all__ = ["api", "folder", "gateway", "serve"]
