"""Files of every kind go in with a schema, and come out with the fields that a language model filled.

All real services run; only the model is ours. It misbehaves before it answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from endtoend.conftest import MakeStack
from endtoend.test_batches import batch, documents, key_of
from support.model_endpoint import KEY, model_endpoint, refuses, says

pytestmark = pytest.mark.timeout(240)

SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}


async def test_a_model_fills_fields_in_every_file_that_could_be_read(make_stack: MakeStack, tmp_path: Path) -> None:
    documents(folder := tmp_path / "papers")
    (schema := tmp_path / "fields.json").write_text(json.dumps(SCHEMA))
    trouble = (refuses(500, "oops"), refuses(429, "slow down", Retry_After="1"), says({"amount": "much"}))
    async with model_endpoint(*trouble, says({"amount": 2.5})) as endpoint:
        settings = {"WAYBILL_LLM_URL": endpoint.url, "WAYBILL_LLM_MODEL": "tiny-1", "WAYBILL_LLM_KEY": KEY}
        stack = await make_stack("api", "gateway", "worker", **settings)
        key = await key_of(stack, "acme")
        out = tmp_path / "results"
        code, said, err = await batch(stack, key, "submit", str(folder), "--schema", str(schema), "-o", str(out))
        assert code == 5, (said, err)  # two files cannot be read, with a model or without
        assert "6 files: 4 complete, 2 failed" in said
        texts = {document.split("\n")[1] for document in endpoint.documents()}
    assert "First line" in texts
    assert any("Prices" in text for text in texts), "a sheet comes with its name"
    for name in ("invoices/august.pdf", "notes/one.txt", "notes/deep/copy.txt", "sheets/list.xlsx"):
        result = json.loads((out / f"{name}.json").read_text())
        assert result["enrichment"]["fields"] == {"amount": 2.5}
        assert result["pages"]
    summary = json.loads((out / "SUMMARY.json").read_text())
    assert summary["totals"] == [{"field": "amount", "currency": None, "sum": "10.0", "files": 4}]
    logs = stack.log("worker") + stack.log("api") + stack.log("gateway")
    assert "language_model_answered" in logs
    assert KEY not in logs
    assert "First line" not in logs
