"""Both ends prove that they know a secret, and neither tells it to the other."""

from __future__ import annotations

import pytest

from waybill.http.proofs import WINDOW, Doorman, Unproven, ask

OLD, NEW, OTHER = (letter * 32 for letter in (b"a", b"b", b"c"))
NOW = 1_800_000_000.0


def doorman(*accepted: bytes) -> Doorman:
    return Doorman(accepted, lambda: NOW)


def header(secret: bytes = NEW, method: str = "POST", path: str = "/process", now: float = NOW) -> str:
    return ask(secret, method, path, now)[1]["Authorization"]


def test_caller_and_server_recognise_each_other_by_any_accepted_secret() -> None:
    for secret in (OLD, NEW):
        asked, sent = ask(secret, "POST", "/process", NOW)
        seen = doorman(NEW, OLD).check("POST", "/process", sent["Authorization"])
        assert asked.is_answered(200, seen.answer(200))
        assert secret.decode() not in sent["Authorization"] + seen.answer(200)


def test_an_answer_is_no_proof_for_another_request_or_another_status() -> None:
    (asked, sent), (another, _) = (ask(NEW, "POST", "/process", NOW) for _ in range(2))
    proof = doorman(NEW).check("POST", "/process", sent["Authorization"]).answer(422)
    assert asked.is_answered(422, proof)
    assert not asked.is_answered(200, proof)
    assert not another.is_answered(422, proof)
    for nonsense in (None, "", "0" * 64, "ü"):
        assert not asked.is_answered(422, nonsense)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (None, "missing"),
        ("", "wrong"),
        ("Bearer wb_something", "wrong"),
        (header(OTHER), "wrong"),
        (header(method="GET"), "wrong"),
        (header(path="/render"), "wrong"),
        (header().replace("time=1", "time=2"), "wrong"),
        (header()[:-1], "wrong"),
        (header() + " ", "wrong"),
        (header(now=NOW - WINDOW - 1), "late"),
        (header(now=NOW + WINDOW + 1), "late"),
    ],
)
def test_whoever_proves_nothing_is_refused(given: str | None, fault: str) -> None:
    with pytest.raises(Unproven) as refused:
        doorman(NEW).check("POST", "/process", given)
    assert refused.value.fault == fault


def test_a_proof_is_good_once_and_forgotten_when_it_is_too_old_to_be_used() -> None:
    now = NOW
    guard = Doorman((NEW,), lambda: now)
    sent = header()
    guard.check("POST", "/process", sent)
    with pytest.raises(Unproven) as refused:
        guard.check("POST", "/process", sent)
    assert refused.value.fault == "repeated"
    for _ in range(100):
        guard.check("POST", "/process", header())
    now = NOW + 2 * WINDOW + 1
    guard.check("POST", "/process", header(now=now))
    assert len(guard._seen) == 1
