"""`waybill apikey`: a key is shown once, listed without its secret, and ended at once."""

from __future__ import annotations

import pytest

from support.command_line import Waybill
from waybill.db.database import Connection
from waybill.errors import Unauthorized
from waybill.ids import new_id
from waybill.security import keys
from waybill.security.principals import known_permissions, of_session


async def test_a_key_from_its_making_to_its_end(waybill: Waybill, hot: Connection) -> None:
    none = await waybill("apikey", "ls")
    assert (none.code, none.out) == (0, "")
    made = await waybill("apikey", "create", "acme", "--name", "erp")
    assert made.code == 0
    text = made.out.strip()
    found = await keys.verify(hot, text)
    assert found.permissions == {"convert:read", "convert:write"}
    assert "only time" in made.err

    listed = await waybill("apikey", "ls")
    assert "erp" in listed.out
    assert text[-43:] not in listed.out
    (record,) = (await waybill("apikey", "ls", "--tenant", "acme", "--json")).json["keys"]
    assert (record["state"], record["hint"]) == ("active", text[-4:])
    assert (await waybill("apikey", "ls", "--tenant", "other", "--json")).json == {"keys": []}

    ended = await waybill("apikey", "revoke", record["id"])
    assert (ended.code, "is revoked" in ended.out) == (0, True)
    with pytest.raises(Unauthorized):
        await keys.verify(hot, text)
    assert (await waybill("apikey", "ls", "--json")).json["keys"][0]["state"] == "revoked"


async def test_a_permission_that_is_not_there_is_answered_with_those_that_are(waybill: Waybill) -> None:
    wrong = await waybill("apikey", "create", "acme", "-p", "convert:read", "-p", "everything")
    assert (wrong.code, wrong.out) == (2, "")
    assert "'everything'" in wrong.err
    help_text = " ".join((await waybill("apikey", "create", "--help", COLUMNS="200")).out.split())
    for name, words in known_permissions().items():
        assert name in wrong.err
        assert f"{name} ({words})" in help_text
    assert (await waybill("apikey", "ls", "--json")).json == {"keys": []}


async def test_without_a_word_a_key_may_do_what_a_browser_may(waybill: Waybill) -> None:
    made = await waybill("apikey", "create", "acme", "--json")
    assert made.json["permissions"] == sorted(of_session(new_id()).permissions)


async def test_permissions_and_expiry(waybill: Waybill, hot: Connection) -> None:
    made = await waybill(
        "apikey", "create", "acme", "-p", "convert:read", "-p", "admin", "--expires-in", "90d", "--json"
    )
    assert made.json["permissions"] == ["admin", "convert:read"]
    found = await keys.verify(hot, made.json["key"])
    assert found.expires_in == pytest.approx(90 * 86400, abs=60)
    for wrong in (
        ("create", "public"),
        ("create", "Ac me"),
        ("create", "acme", "-p", "everything"),
        ("create", "acme", "--expires-in", "soon"),
        ("revoke", "01890000-0000-7000-8000-000000000001"),
        ("revoke", "nonsense"),
    ):
        assert (await waybill("apikey", *wrong)).code != 0, wrong
