"""The chain is attacked by somebody who may do everything to the table, and every attack is seen."""

from __future__ import annotations

import pytest

from common.audit.conftest import Attack, Grow
from support.engine import Connect
from waybill.audit import record
from waybill.audit.checkpoints import ChainPlace
from waybill.audit.signatures import Signer
from waybill.audit.verification import verify

_COPY = """
INSERT INTO audit_events (id, at, actor, action, subject, outcome, detail, position, hash)
SELECT gen_random_uuid(), at, actor, action, subject, outcome, detail, {position}, hash FROM audit_events
 WHERE position = 4
"""


async def test_a_chain_that_nobody_touched_is_whole_and_says_how_far_it_goes(
    grow: Grow, connect: Connect, signer: Signer
) -> None:
    connection = await connect()
    assert (await verify(connection, signer)).whole
    await grow(5)
    await record(connection, "queue.paused", "queue:new")
    verdict = await verify(connection, signer, page=2)
    assert verdict.whole
    assert (verdict.first, verdict.head.position, verdict.events, verdict.unlinked) == (1, 5, 5, 1)
    assert verdict.oldest_unlinked is not None


@pytest.mark.parametrize(
    ("attack_with", "position", "says"),
    [
        (["UPDATE audit_events SET actor = 'command:bob@desk' WHERE position = 3"], 3, "changed"),
        (["UPDATE audit_events SET detail = '{}' WHERE position = 3"], 3, "changed"),
        (["UPDATE audit_events SET at = at - interval '1 hour' WHERE position = 1"], 1, "changed"),
        (["UPDATE audit_events SET times = 2 WHERE position = 6"], 6, "changed"),
        (["DELETE FROM audit_events WHERE position = 3"], 3, "event 3 is missing"),
        (["DELETE FROM audit_events WHERE position <= 2"], 1, "events 1 to 2 are missing"),
        (["DELETE FROM audit_events WHERE position >= 5"], 5, "events 5 to 6 are missing at the end"),
        (["DELETE FROM audit_events"], 1, "events 1 to 6 are missing at the end"),
        (
            [
                "UPDATE audit_events SET position = 100 WHERE position = 2",
                "UPDATE audit_events SET position = 2 WHERE position = 3",
                "UPDATE audit_events SET position = 3 WHERE position = 100",
            ],
            2,
            "stands where another event was",
        ),
        (
            [
                "UPDATE audit_events SET position = position + 100 WHERE position >= 3",
                "UPDATE audit_events SET position = position - 99 WHERE position >= 103",
                _COPY.format(position=3),
            ],
            3,
            "stands where another event was",
        ),
        ([_COPY.format(position=7)], 7, "changed"),
        ([_COPY.format(position=0)], 0, "put in where the trail had been cut"),
        (["UPDATE audit_checkpoints SET position = 4"], 4, "forged"),
        (
            [
                "DELETE FROM audit_events WHERE position >= 5",
                "UPDATE audit_checkpoints SET position = 4, hash = (SELECT hash FROM audit_events WHERE position = 4)",
            ],
            4,
            "forged",
        ),
        (["DELETE FROM audit_checkpoints"], 1, "more was put behind it"),
    ],
)
async def test_whatever_is_changed_removed_inserted_or_swapped_is_found(
    grow: Grow, attack: Attack, connect: Connect, signer: Signer, attack_with: list[str], position: int, says: str
) -> None:
    await grow(6)
    await attack(*attack_with)
    verdict = await verify(await connect(), signer)
    assert verdict.fault is not None
    assert verdict.fault.position == position
    assert says in verdict.fault.says


@pytest.mark.parametrize(
    "tampered",
    [
        ["DELETE FROM audit_events WHERE position >= 5"],
        [
            "DELETE FROM audit_events WHERE position >= 5",
            "UPDATE audit_checkpoints SET position = 4, hash = (SELECT hash FROM audit_events WHERE position = 4)",
        ],
        ["DELETE FROM audit_events WHERE position >= 5", "DELETE FROM audit_checkpoints"],
    ],
)
async def test_a_tail_that_was_cut_off_stays_visible_when_new_events_are_linked(
    grow: Grow, attack: Attack, connect: Connect, signer: Signer, tampered: list[str]
) -> None:
    await grow(6)
    await attack(*tampered)
    await grow(3)
    connection = await connect()
    verdict = await verify(connection, signer)
    assert verdict.fault is not None
    assert verdict.fault.position >= 5
    assert await connection.fetchval("SELECT count(*) FROM audit_events WHERE action = 'audit.damaged'") == 1


async def test_a_chain_that_was_made_anew_by_who_knows_the_secret_is_not_the_one_that_was_noted(
    grow: Grow, attack: Attack, connect: Connect, signer: Signer
) -> None:
    await grow(4)
    connection = await connect()
    noted = (await verify(connection, signer)).head
    await grow(1)
    assert (await verify(connection, signer, expected=noted)).whole
    await attack(
        "DELETE FROM audit_events WHERE position = 5",
        "UPDATE audit_events SET position = NULL, hash = NULL",
        "UPDATE audit_events SET actor = 'command:bob@desk'",
        "DELETE FROM audit_checkpoints",
    )
    await grow(2)
    assert (await verify(connection, signer)).whole, "nothing in the database shows it"
    verdict = await verify(connection, signer, expected=noted)
    assert verdict.fault is not None
    assert "the place that you expect" in verdict.fault.says
    missing = await verify(connection, signer, expected=ChainPlace(50, bytes(32)))
    assert missing.fault is not None
    assert "which you expect" in missing.fault.says


async def test_another_secret_is_not_taken_for_a_forgery(grow: Grow, connect: Connect) -> None:
    await grow(2)
    verdict = await verify(await connect(), Signer(b"not the secret of the services"))
    assert verdict.fault is not None
    assert "WAYBILL_AUDIT_SECRET" in verdict.fault.says
