"""The pipeline's pages over real HTTP, on real Postgres and a real folder."""

from support.api_fixtures import api, browser, folder, gateway, serve

__all__ = ["api", "browser", "folder", "gateway", "serve"]
