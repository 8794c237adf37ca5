"""One taxonomy: every code has a meaning, every exception ends as a code."""

from __future__ import annotations

import errno
import pickle

import asyncpg
import pytest
import sqlalchemy.exc

from waybill import errors
from waybill.errors import MEANINGS, Code, WaybillError
from waybill.failures import classify
from waybill.messages import msg


def subclasses(root: type[WaybillError]) -> list[type[WaybillError]]:
    return [root, *(each for child in root.__subclasses__() for each in subclasses(child))]


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_a_meaning_a_person_can_read(code: Code) -> None:
    meaning = MEANINGS[code]
    assert 400 <= meaning.status < 600
    assert meaning.sentence.endswith(".")


@pytest.mark.parametrize("kind", subclasses(WaybillError))
def test_an_exception_says_its_codes_sentence_unless_it_has_a_better_one(kind: type[WaybillError]) -> None:
    assert str(kind()) == MEANINGS[kind.code].sentence
    assert classify(kind("page 3 is missing")).message == "page 3 is missing"


def test_a_documents_fault_is_permanent_and_a_dependencys_is_not() -> None:
    for kind in subclasses(errors.DocumentFault):
        assert not classify(kind()).retryable
    for kind in subclasses(errors.DependencyFault):
        assert classify(kind()).retryable


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("surprise"), Code.UNKNOWN),
        (OSError(errno.ENOSPC, "No space left on device"), Code.IO_ERROR),
        (PermissionError("no"), Code.IO_ERROR),
        (TimeoutError(), Code.TIMEOUT),
        (asyncpg.ConnectionDoesNotExistError("gone"), Code.DB_UNAVAILABLE),
        (asyncpg.InterfaceError("connection is closed"), Code.DB_UNAVAILABLE),
        (asyncpg.AdminShutdownError("terminating"), Code.DB_UNAVAILABLE),
        (
            asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
            Code.DB_UNAVAILABLE,
        ),
        (asyncpg.InternalClientError("our own mistake"), Code.UNKNOWN),
        (sqlalchemy.exc.DBAPIError("x", {}, Exception(), connection_invalidated=True), Code.DB_UNAVAILABLE),
        (sqlalchemy.exc.TimeoutError("pool"), Code.DB_UNAVAILABLE),
        (sqlalchemy.exc.IntegrityError("x", {}, Exception("duplicate")), Code.UNKNOWN),
        (ConnectionRefusedError("somebody else's server"), Code.IO_ERROR),
    ],
)
def test_foreign_exceptions_are_understood(error: Exception, code: Code) -> None:
    failure = classify(error)
    assert failure.code == code
    assert failure.retryable
    assert failure.detail is not None
    assert failure.detail["exception"] == type(error).__qualname__


@pytest.mark.parametrize(
    "mistake", ["cannot perform operation: another operation is in progress", "the server expects 1 argument"]
)
def test_a_mistake_in_using_the_database_is_no_outage_and_so_cannot_be_repeated_for_ever(mistake: str) -> None:
    assert classify(asyncpg.InterfaceError(mistake)).charged


def test_an_outage_of_our_database_costs_no_attempt_but_an_unknown_error_does() -> None:
    assert not classify(asyncpg.InterfaceError("connection is closed")).charged
    assert classify(ValueError()).charged


def test_a_wait_the_other_side_asks_for_costs_no_attempt() -> None:
    failure = classify(errors.RateLimited(retry_after=7))
    assert (failure.charged, failure.retry_after) == (False, 7)


def test_what_an_exception_says_is_bounded() -> None:
    failure = classify(ValueError("x" * 100_000))
    assert failure.detail is not None
    assert len(failure.detail["text"]) <= 2000


def test_an_error_keeps_the_key_of_its_message_and_a_job_stores_it() -> None:
    error = errors.Refused(msg("form.too_many_parts", number=30), detail={"form": 1})
    assert (error.message, error.key, error.params) == (
        "The form has more than 30 parts.",
        "form.too_many_parts",
        {"number": 30},
    )
    failure = classify(error)
    assert (failure.key, failure.params) == (error.key, error.params)
    assert failure.detail == {"form": 1, "key": "form.too_many_parts", "params": {"number": 30}}


def test_an_error_without_a_message_has_its_codes_key_and_a_plain_string_has_none() -> None:
    assert classify(errors.NotFound()).key == "errors.NOT_FOUND"
    plain = errors.NotFound("There is no cap.")
    assert (plain.key, plain.params, classify(plain).detail) == (None, {}, None)


def test_an_error_keeps_its_key_in_another_process() -> None:
    error = errors.GatewayUnavailable(msg("gateway_call.busy"), retry_after=3)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (again.key, again.message, again.retry_after) == (error.key, error.message, 3)
