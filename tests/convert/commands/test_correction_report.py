"""`waybill mapping report`: what people correct, by the rule that had found it."""

from __future__ import annotations

import json
import uuid
from typing import Any

from support.command_line import Waybill
from waybill.db.database import Connection
from waybill.ids import new_id


def change(rule: str, before: Any, after: Any) -> dict[str, Any]:
    return {"path": rule.rpartition(".")[2], "from": before, "to": after, "rule": rule, "typed": str(after)}


async def conversion(hot: Connection, *revisions: list[dict[str, Any]], mapping: str = "pt_simon_invoice_v1") -> None:
    job = new_id()
    await hot.execute(
        "INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status,"
        " revision) VALUES ($1, 'acme', 'tenant:acme', 'a.pdf', 1, 'ab', $2, 'uploads/a.pdf', 'complete', $3)",
        job,
        mapping,
        len(revisions),
    )
    for number, changes in enumerate(revisions, start=1):
        await revision(hot, job, number, changes)


async def revision(hot: Connection, job: uuid.UUID, number: int, changes: list[dict[str, Any]]) -> None:
    await hot.execute(
        "INSERT INTO revisions (job_id, number, author, changes, xml_key, xml_bytes, xml_sha256, record_key,"
        " record_bytes, record_sha256) VALUES ($1, $2, 'session', $3, 'x', 1, 'ab', 'r', 1, 'ab')",
        job,
        number,
        json.dumps(changes),
    )


async def test_rules_are_ranked_by_the_documents_they_were_corrected_in(waybill: Waybill, hot: Connection) -> None:
    total, amount = "fields.total", "tables.lines.columns.amount"
    await conversion(hot)
    await conversion(hot, [change(total, "1.00", "2.00"), change(amount, "3", "4")], [change(amount, "4", "5")])
    await conversion(hot, [change(total, None, "7.00")])
    await conversion(hot, [change(total, "\x1b[31m<b>", "9.00")], mapping="other_v1")

    report = (await waybill("mapping", "report", "pt_simon_invoice_v1", "--json")).json
    assert (report["mapping"], report["converted"]) == ("pt_simon_invoice_v1", 3)
    first, second = report["rules"]
    assert {**first, "examples": None} == {
        "rule": total,
        "corrections": 2,
        "documents": 2,
        "share": 0.6667,
        "examples": None,
    }
    assert first["examples"] == [
        {"path": "total", "from": None, "to": "7.00"},
        {"path": "total", "from": "1.00", "to": "2.00"},
    ]
    assert (second["rule"], second["corrections"], second["documents"], second["share"]) == (amount, 2, 1, 0.3333)

    told = await waybill("mapping", "report", "pt_simon_invoice_v1")
    assert told.lines[0] == "pt_simon_invoice_v1: 3 documents converted"
    assert told.lines[1].split() == ["RULE", "CORRECTIONS", "DOCUMENTS", "SHARE", "LATEST"]
    assert told.lines[2].split() == [total, "2", "2", "66.7%", "nothing", "→", '"7.00";', '"1.00"', "→", '"2.00"']

    other = await waybill("mapping", "report", "other_v1")
    assert other.lines[0] == "other_v1: one document converted"
    assert "\x1b" not in other.out


async def test_only_the_latest_examples_are_told(waybill: Waybill, hot: Connection) -> None:
    await conversion(hot, *([change("fields.total", str(number), str(number + 1))] for number in range(6)))
    (rule,) = (await waybill("mapping", "report", "pt_simon_invoice_v1", "--json")).json["rules"]
    assert [each["to"] for each in rule["examples"]] == ["6", "5", "4"]
    assert rule["corrections"] == 6


async def test_what_was_never_corrected_or_converted(waybill: Waybill, hot: Connection) -> None:
    await conversion(hot)
    good = await waybill("mapping", "report", "pt_simon_invoice_v1")
    assert (good.code, good.out) == (0, "")
    assert "Of one document converted with pt_simon_invoice_v1, none was corrected." in good.err
    unused = await waybill("mapping", "report", "en16931_cii")
    assert (unused.code, "Of 0 documents" in unused.err) == (0, True)
    unknown = await waybill("mapping", "report", "no_such")
    assert unknown.code == 1
    assert "No document was converted with a mapping called 'no_such'." in unknown.err
