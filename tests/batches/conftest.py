"""Batches over real HTTP, on a real Postgres, with a gateway that unpacks and extracts for real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.api_fixtures import api, browser, converter, folder, serve
from support.api_server import Api
from support.batch_desk import Desk
from support.gateway import Gateway
from support.packs import SECRET
from waybill.db import Database
from waybill.storage import LocalStorage

__all__ = ["api", "browser", "converter", "folder", "serve"]


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that knows who calls it."""
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), gateway_secret=SECRET)
    yield gateway
    gateway.close()


@pytest.fixture
def storage(folder: Path) -> LocalStorage:
    return LocalStorage(folder)


@pytest.fixture
def called(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """Whatever the test's own process works, it asks this gateway."""
    monkeypatch.setenv("WAYBILL_GATEWAY_URL", gateway.url)
    monkeypatch.setenv("WAYBILL_GATEWAY_SECRET", SECRET)
    monkeypatch.setenv("WAYBILL_HOME", str(tmp_path / "home"))
    return gateway


@pytest.fixture
def desk(db: Database, storage: LocalStorage, called: Gateway, api: Api) -> Desk:
    """The API's batches are worked here. The API starts first: it registers every pipeline's kinds."""
    return Desk(db, storage)
