"""What a run in a test reaches beyond the database: a folder, and a gateway that nobody runs."""

from __future__ import annotations

from pathlib import Path

from waybill.storage import LocalStorage
from waybill_worker.context import Outside
from waybill_worker.gateway import Gateway


def outside(folder: Path) -> Outside:
    return Outside(LocalStorage(folder), Gateway("http://127.0.0.1:9", 1.0))
