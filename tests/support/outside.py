"""What a run in a test reaches beyond the database: a folder, and a gateway that nobody runs."""

from __future__ import annotations

from pathlib import Path

from waybill.storage import LocalStorage
from waybill_convert.clients.gateway import Gateway
from waybill_engine.context import Outside


def outside(folder: Path) -> Outside:
    return Outside(LocalStorage(folder), Gateway("http://127.0.0.1:9", 1.0))
