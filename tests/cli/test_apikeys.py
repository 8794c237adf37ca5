"""`waybill apikey`: a key is shown once, listed without its secret, and ended at once."""

from __future__ import annotations

from pathlib import Path

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
    assert found.permissions == {"batches:read", "batches:write", "convert:read", "convert:write"}
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


async def test_a_key_in_a_file_is_registered_and_never_printed(
    waybill: Waybill, hot: Connection, tmp_path: Path
) -> None:
    text = "wb_0Kx3vRq9TmB2nZc7LwYp5d_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f"
    file = tmp_path / "key"
    file.write_text(f"{text}\n")
    arguments = ("apikey", "ensure", "admin", "--file", file, "-p", "admin", "--name", "first")
    first, again = await waybill(*arguments), await waybill(*arguments)
    assert (first.code, again.code) == (0, 0)
    assert "is registered." in first.out
    assert "was registered already; it is active." in again.out
    assert (await keys.verify(hot, text)).permissions == {"admin"}
    as_json = await waybill(*arguments, "--json")
    assert (as_json.json["new"], as_json.json["name"]) == (False, "first")
    for ran in (first, again, as_json):
        assert text[-43:] not in ran.out + ran.err


@pytest.mark.parametrize("content", [b"", b"secret", b"\xff\xfe", b"x" * 10_000, None])
async def test_a_file_without_a_key_is_refused_without_quoting_it(
    waybill: Waybill, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    ran = await waybill("apikey", "ensure", "admin", "--file", file, "-p", "admin")
    assert (ran.code, ran.out) == (1, "")
    assert "secret" not in ran.err
    assert (await waybill("apikey", "ls", "--json")).json == {"keys": []}
