"""A traceback means a bug of ours, and no line quotes a document."""

from __future__ import annotations

import errno
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest
import structlog
from lxml import etree
from pydantic import BaseModel

from support.log_lines import print_plainly
from waybill.config import CommonSettings
from waybill.errors import DatabaseUnavailable, GatewayRejected, GatewayUnavailable, NotReady, StorageFull
from waybill.log import configure, log_crashes
from waybill.log.exceptions import error_words, is_expected
from waybill.log.handlers import RotatingFile, Stream
from waybill.messages import msg

log = structlog.get_logger()

CONTENT = "Zanzibar Quartz 4711"

Begin = Callable[[], str]


@pytest.fixture(autouse=True, params=["json", "console"])
def begin(request: pytest.FixtureRequest) -> Iterator[Begin]:
    """Begins to log in one of the two formats, which it returns. Standard error is the test's own only inside it."""
    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook)
    level = root.level

    def configured() -> str:
        given = {"database_url": "postgresql://u@h/d", "log_format": request.param}
        configure(CommonSettings.model_validate(given), "worker")
        return str(request.param)

    yield configured
    for handler in list(root.handlers):
        if isinstance(handler, Stream | RotatingFile):
            root.removeHandler(handler)
            handler.close()
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(False)
    print_plainly()


def has_traceback(written: str) -> bool:
    return "Traceback" in written or '"exc_type"' in written


def quoting(key: str, **params: object) -> GatewayRejected:
    """An error with a message of the document library, as the gateway's answer becomes one."""
    error = GatewayRejected(CONTENT)
    error.key, error.params = key, params
    return error


EXPECTED = {
    "a rejected document": GatewayRejected(CONTENT, detail={"findings_total": 3}),
    "a finding": quoting("check.sum_differs", found=CONTENT, line=4),
    "back-pressure": GatewayUnavailable(msg("gateway_call.busy"), retry_after=5),
    "a parameter": GatewayUnavailable(msg("convert.gateway.other_root", found=CONTENT, wanted="TaxInvoice")),
    "a refusal": NotReady(),
    "a full storage": StorageFull(),
    "no database": DatabaseUnavailable(),
    "a refused connection": ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    "a full disk": OSError(errno.ENOSPC, "No space left on device", CONTENT),
    "a group": ExceptionGroup(CONTENT, [NotReady()]),
}


@pytest.mark.parametrize("error", EXPECTED.values(), ids=EXPECTED)
@pytest.mark.parametrize("library", [False, True])
def test_an_expected_error_is_one_line_with_its_code(
    error: Exception, library: bool, begin: Begin, capsys: pytest.CaptureFixture[str]
) -> None:
    begin()
    logger: Any = logging.getLogger("uvicorn.error") if library else log
    try:
        raise error
    except Exception:
        logger.exception("failed")
    written = capsys.readouterr().err
    assert len(written.splitlines()) == 1
    assert not has_traceback(written)
    assert CONTENT not in written
    assert "code" in written


def test_a_line_has_the_key_and_what_counts_or_places_something(
    begin: Begin, capsys: pytest.CaptureFixture[str]
) -> None:
    log_format = begin()
    log.warning("failed", exc_info=quoting("storage.full", line=4, count=2, found=CONTENT, page="x"))
    written = capsys.readouterr().err
    if log_format == "json":
        line = json.loads(written)
        assert (line["code"], line["key"]) == ("GW_4XX", "storage.full")
        assert line["params"] == {"line": 4, "count": 2}
    else:
        assert "key=storage.full" in written


class Form(BaseModel):
    amount: int


def _raise(way: str) -> None:
    match way:
        case "pydantic":
            Form.model_validate({"amount": CONTENT})
        case "json":
            json.loads(f'{{"a": {CONTENT}')
        case "lxml":
            etree.fromstring(f"<a><{CONTENT.split()[0]}></b></a>")
        case "number":
            int(CONTENT)
        case "key":
            dict[str, int]()[CONTENT]
        case "postgres":
            error = asyncpg.UniqueViolationError(f'duplicate key value "{CONTENT}"')
            error.detail, error.table_name = f"Key (name)=({CONTENT}) already exists.", "conversions"
            raise error
        case "file":
            raise PermissionError(errno.EACCES, "Permission denied", f"/uploads/{CONTENT}.pdf")
        case "cause":
            try:
                int(CONTENT)
            except ValueError as error:
                raise RuntimeError(CONTENT) from error
        case "group":
            raise ExceptionGroup(CONTENT, [ValueError(CONTENT), KeyError(CONTENT)])


@pytest.mark.parametrize("way", ["pydantic", "json", "lxml", "number", "key", "postgres", "file", "cause", "group"])
def test_a_surprise_keeps_its_traceback_and_quotes_nothing(
    way: str, begin: Begin, capsys: pytest.CaptureFixture[str]
) -> None:
    begin()
    with pytest.raises(Exception) as caught:
        _raise(way)
    log.error("failed", exc_info=caught.value)
    logging.getLogger("uvicorn.error").error("once more", exc_info=caught.value)
    first, again = capsys.readouterr().err.split("once more")
    assert has_traceback(first)
    assert "_raise" in first
    assert not has_traceback(again), "the second line about it does not repeat the traceback"
    for word in CONTENT.split():
        assert word not in first + again
    assert "conversions" in first or way != "postgres"


def test_what_ends_the_process_or_a_thread_is_logged_without_its_message(
    begin: Begin, capsys: pytest.CaptureFixture[str]
) -> None:
    begin()
    log_crashes()
    sys.excepthook(ValueError, ValueError(CONTENT), None)
    thread = threading.Thread(target=_raise, args=("number",))
    thread.start()
    thread.join()
    written = capsys.readouterr().err
    assert written.count("crashed") == 2
    assert "Zanzibar" not in written


def test_words_for_a_line_quote_nothing_either() -> None:
    assert error_words(ValueError(CONTENT)) == "ValueError"
    assert error_words(GatewayRejected(CONTENT)) == str(GatewayRejected())
    assert not is_expected(RuntimeError())


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_an_error_that_cannot_be_shown_is_logged_all_the_same(begin: Begin, capsys: pytest.CaptureFixture[str]) -> None:
    begin()
    log.error("failed", exc_info=Mute())
    assert "Mute" in capsys.readouterr().err
