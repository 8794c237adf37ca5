"""An operator's folder of mappings: what is in it can be chosen, on the page and by programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.api_fixtures import Serve
from support.api_server import upload
from waybill_convert.settings import ConvertSettings


def write(path: Path, name: str, title: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"format": 1, "name": name, "title": title, "xml": {"root": {"name": "Saeco"}}}))


async def test_mappings_of_the_folder_can_be_chosen(serve: Serve, tmp_path: Path) -> None:
    write(tmp_path / "mine/saeco_v1/mapping.json", "saeco_v1", "Saeco invoices")
    write(tmp_path / "mine/flat_v1.json", "flat_v1", "Flat invoices")
    async with serve(mappings_dir=str(tmp_path / "mine")) as api:
        client = await api.browser()
        listed = (await client.get("/api/mappings")).json()["mappings"]
        assert {"saeco_v1", "flat_v1", "pt_simon_invoice_v1"} <= set(listed)
        page = (await client.get("/")).text
        assert "Saeco invoices" in page
        assert "Flat invoices" in page
        job = (await upload(client, mapping="saeco_v1")).json()["job"]
        assert job["mapping"] == "saeco_v1"
        refused = await upload(client, mapping="seco_v1")
        assert refused.json()["code"] == "BAD_MAPPING"
        assert "saeco_v1" in refused.json()["detail"]


def test_the_settings_older_name_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAYBILL_GATEWAY_MAPPINGS_DIR", str(tmp_path))
    assert ConvertSettings().mappings_dir == tmp_path
