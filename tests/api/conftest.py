"""The API over real HTTP, on real Postgres and a real folder."""

from support.api_fixtures import api, browser, converter, folder, gateway, serve

__all__ = ["api", "browser", "converter", "folder", "gateway", "serve"]
