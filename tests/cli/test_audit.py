"""`waybill audit`: what people did, and whether the record of it is whole."""

from __future__ import annotations

import re
from pathlib import Path

from support.command_line import Waybill
from waybill.audit.chain import link
from waybill.audit.signatures import Signer
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.database import Connection

SECRET = "at least thirty-two characters long"


async def _link(db: Database) -> None:
    assert await link(db, Signer(SECRET.encode()))


async def test_what_a_command_does_is_listed_with_the_account_that_ran_it(waybill: Waybill) -> None:
    none = await waybill("audit", "ls")
    assert (none.code, none.out) == (0, "")
    key = (await waybill("apikey", "create", "acme", "--json")).json
    await waybill("queue", "pause", "convert", "--reason", "too hot")
    await waybill("tenant", "hold", "other")
    listed = (await waybill("audit", "ls", "--json")).json
    assert [event["action"] for event in listed["events"]] == ["hold.set", "queue.paused", "key.created"]
    assert all(re.fullmatch(r"command:.+@.+", event["actor"]) for event in listed["events"])
    assert listed["next"] is None
    assert listed["events"][1]["detail"] == {"reason": "too hot"}
    said = await waybill("audit", "ls", "--action", "key")
    assert f"key:{key['id']}" in said.out
    assert "queue.paused" not in said.out
    assert key["key"] not in (await waybill("audit", "ls", "--json")).out


async def test_filters_and_pages(waybill: Waybill) -> None:
    for queue in ("one", "two", "three"):
        await waybill("queue", "pause", queue)
    await waybill("tenant", "weight", "acme", "2")
    first = (await waybill("audit", "ls", "--json", "--action", "queue", "-n", "2")).json
    assert [event["subject"] for event in first["events"]] == ["queue:three", "queue:two"]
    rest = (await waybill("audit", "ls", "--json", "--action", "queue", "--cursor", first["next"])).json
    assert [event["subject"] for event in rest["events"]] == ["queue:one"]
    assert "--cursor" in (await waybill("audit", "ls", "-n", "1")).err
    for options, number in (
        (["--tenant", "acme"], 1),
        (["--subject", "queue:two"], 1),
        (["--who", first["events"][0]["actor"]], 4),
        (["--who", "nobody"], 0),
        (["--since", "1h"], 4),
        (["--until", "1h"], 0),
        (["--since", "2001-01-01", "--until", "2002-01-01T00:00"], 0),
    ):
        assert len((await waybill("audit", "ls", "--json", *options)).json["events"]) == number, options
    wrong = await waybill("audit", "ls", "--since", "yesterday")
    assert (wrong.code, "neither a time" in wrong.err) == (2, True)
    assert (await waybill("audit", "ls", "--cursor", "nonsense")).code == 1


async def test_a_whole_trail_is_said_to_be_whole_and_a_changed_one_is_not(
    waybill: Waybill, db: Database, hot: Connection
) -> None:
    async def verify(*options: str) -> tuple[int, str]:
        ran = await waybill("audit", "verify", *options, WAYBILL_AUDIT_SECRET=SECRET)
        return ran.code, ran.out + ran.err

    assert (await verify())[0] == 0
    for queue in ("one", "two", "three"):
        await waybill("queue", "pause", queue)
    code, said = await verify()
    assert (code, "3 events not linked yet" in said) == (0, True)
    await _link(db)
    code, said = await verify()
    assert code == 0
    assert "whole: events 1 to 3" in said
    head = re.search(r"Head: (\S+)", said)
    assert head is not None
    assert (await verify("--expect", head[1]))[0] == 0
    assert (await verify("--expect", "nonsense"))[0] == 2
    assert (await verify("--expect", f"2:{'00' * 32}"))[0] == 1

    await hot.execute("ALTER TABLE audit_events DISABLE TRIGGER ALL")
    await hot.execute("UPDATE audit_events SET subject = 'queue:four' WHERE position = 2")
    code, said = await verify()
    assert code == 1
    assert "event 2 (" in said
    assert "Whole: events 1 to 1" in said
    answer = (await waybill("audit", "verify", "--json", WAYBILL_AUDIT_SECRET=SECRET)).json
    assert (answer["whole"], answer["fault"]["position"]) == (False, 2)


async def test_without_a_secret_of_its_own_the_command_shares_the_services_one(
    waybill: Waybill, db: Database, database_url: str
) -> None:
    await waybill("queue", "pause", "one")
    async with db.hot() as connection:
        settings = CommonSettings.model_validate({"database_url": database_url})
        signer = await Signer.of(settings, connection)
    await link(db, signer)
    assert (await waybill("audit", "verify")).code == 0
    other = await waybill("audit", "verify", WAYBILL_AUDIT_SECRET=SECRET)
    assert (other.code, "WAYBILL_AUDIT_SECRET" in other.err) == (1, True)


async def test_an_auditor_checks_the_trail_with_the_public_key_alone(
    waybill: Waybill, db: Database, tmp_path: Path
) -> None:
    await waybill("queue", "pause", "one")
    await _link(db)
    printed = await waybill("audit", "key", WAYBILL_AUDIT_SECRET=SECRET)
    assert printed.out.startswith("-----BEGIN PUBLIC KEY-----")
    mine = tmp_path / "waybill-audit.pem"
    mine.write_text(printed.out)
    checked = await waybill("audit", "verify", "--key", str(mine))
    assert (checked.code, "whole" in checked.out) == (0, True), checked.err
    described = (await waybill("audit", "key", "--json", WAYBILL_AUDIT_SECRET=SECRET)).json
    assert described["public_key"] == printed.out
    other = tmp_path / "other.pem"
    other.write_text((await waybill("audit", "key", "--json", WAYBILL_AUDIT_SECRET=SECRET[::-1])).json["public_key"])
    refused = await waybill("audit", "verify", "--key", str(other))
    assert (refused.code, described["fingerprint"] in refused.err) == (1, True)
    assert (await waybill("audit", "verify", "--key", str(other), "--key", str(mine))).code == 0
    other.write_text("no key")
    refused = await waybill("audit", "verify", "--key", str(other))
    assert (refused.code, "waybill audit key" in refused.err, "Traceback" in refused.err) == (1, True, False)
