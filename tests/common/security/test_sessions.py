"""Session cookies: only what we signed, and only for as long as it lasts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill.ids import new_id
from waybill.security import SessionSigner

SIGNER = SessionSigner(b"a" * 32, lasts=100)


def test_what_is_signed_reads_back() -> None:
    for key in (None, new_id()):
        session = SIGNER.start(1000.5, key)
        assert SIGNER.load(SIGNER.dump(session), 1050) == session


def test_it_lasts_as_long_as_it_lasts() -> None:
    cookie = SIGNER.dump(SIGNER.start(1000))
    assert SIGNER.load(cookie, 1099.9) is not None
    assert SIGNER.load(cookie, 1100) is None
    session = SIGNER.start(1000)
    assert not SIGNER.worth_renewing(session, 1010)
    assert SIGNER.worth_renewing(session, 1060)


def test_another_secret_signs_for_others() -> None:
    other = SessionSigner(b"b" * 32, lasts=100)
    assert SIGNER.load(other.dump(other.start(1000)), 1000) is None
    with pytest.raises(ValueError, match="32 bytes"):
        SessionSigner(b"short", lasts=100)


@given(st.text(max_size=200) | st.binary(max_size=100).map(lambda data: data.decode("latin-1")))
def test_no_text_of_strangers_is_a_session(text: str) -> None:
    assert SIGNER.load(text, 1000) is None
    assert SIGNER.load(f"1.{text}", 1000) is None
    body, mac = SIGNER.dump(SIGNER.start(1000)).split(".")[1:]
    assert SIGNER.load(f"1.{body}.{text}", 1000) is None or text == mac
    assert SIGNER.load(f"1.{text}.{mac}", 1000) is None or text == body


def test_every_bit_counts() -> None:
    cookie = SIGNER.dump(SIGNER.start(1000))
    head, body, mac = cookie.split(".")
    for at in range(len(body)):
        changed = body[:at] + ("A" if body[at] != "A" else "B") + body[at + 1 :]
        assert SIGNER.load(f"{head}.{changed}.{mac}", 1000) is None
