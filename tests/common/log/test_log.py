"""A log line is complete, belongs to its job, and holds no secret; and writing one never hurts the work."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from support.forked import Forked
from support.log_lines import leave_log
from support.otlp import collector
from waybill.config import CommonSettings, ProcessSettings
from waybill.log import bind_job, configure
from waybill.log.safety import as_json, plain_values
from waybill.redaction import MASK, is_secret_key, redact_text
from waybill.telemetry import spans, traces

log = structlog.get_logger()


@pytest.fixture(autouse=True)
def _undone() -> Iterator[None]:
    """Leave logging as the other tests expect it."""
    level = logging.getLogger().level
    yield
    leave_log(level)


def settings(**changes: Any) -> CommonSettings:
    given = {"database_url": "postgresql://u:hunter2@h/d", "log_format": "json", **changes}
    return CommonSettings.model_validate(given)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_is_one_json_object_with_everything_one_looks_for(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    before = datetime.now(UTC)
    log.info("claimed", kind="convert_pdf", jobs=3)
    (line,) = lines(capsys)
    written = datetime.fromisoformat(line.pop("timestamp"))
    assert before <= written <= datetime.now(UTC)
    assert written.utcoffset() is not None
    assert line == {
        "level": "info",
        "service": "worker",
        "logger": __name__,
        "event": "claimed",
        "kind": "convert_pdf",
        "jobs": 3,
    }


def test_libraries_speak_through_the_same_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("uvicorn.access").addHandler(logging.StreamHandler())
    configure(settings(), "api")
    with bind_job(job_id="j1"):
        logging.getLogger("uvicorn.access").warning("%s said %d", "GET /", 200, extra={"color_message": "x"})
    (line,) = lines(capsys)
    assert line["event"] == "GET / said 200"
    assert (line["service"], line["logger"], line["job_id"]) == ("api", "uvicorn.access", "j1")
    assert "color_message" not in line


def test_warnings_are_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "api")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("this will go away", stacklevel=1)
        logging.captureWarnings(False)
    (line,) = lines(capsys)
    assert "this will go away" in line["event"]


def test_less_serious_lines_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(log_level="warning"), "worker")
    log.info("too_quiet")
    logging.getLogger("alembic").info("too quiet")
    log.warning("loud_enough")
    assert [line["event"] for line in lines(capsys)] == ["loud_enough"]


def test_even_when_debugging_no_library_prints_statements_with_their_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(settings(log_level="debug"), "worker")
    logging.getLogger("sqlalchemy.engine").info("INSERT …")
    log.debug("ours")
    assert [line["event"] for line in lines(capsys)] == ["ours"]


def test_configuring_again_does_not_double_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    configure(settings(), "worker")
    log.info("once")
    assert len(lines(capsys)) == 1


# The job a line belongs to


async def test_jobs_that_run_side_by_side_never_mix(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    everybody_is_in = asyncio.Barrier(20)

    async def step(number: int) -> None:
        log.info("in_a_task_of_its_own", expected=str(number))

    async def run(number: int) -> None:
        with bind_job(job_id=number, tenant=f"t{number}", worker="w", trace_id=f"{number:032x}"):
            await everybody_is_in.wait()
            log.info("running", expected=str(number))
            await asyncio.gather(asyncio.create_task(step(number)), step(number))
            await asyncio.to_thread(log.info, "in_a_thread", expected=str(number))
        log.info("after")

    await asyncio.gather(*(run(number) for number in range(20)))
    log.info("outside")
    written = lines(capsys)
    assert len(written) == 20 * 5 + 1
    for line in written:
        assert line.get("job_id") == line.get("expected")
        if "expected" in line:
            assert line["tenant"] == f"t{line['job_id']}"
            assert line["trace_id"] == f"{int(line['job_id']):032x}"


def test_a_job_inside_a_job_gives_the_outer_one_back(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    with bind_job(job_id="outer", tenant="t"):
        with bind_job(job_id="inner"):
            log.info("inside")
        log.info("outside")
    assert [(line["job_id"], line["tenant"]) for line in lines(capsys)] == [("inner", "t"), ("outer", "t")]


def test_a_line_within_a_span_names_it_and_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    with collector() as received:
        configure(settings(), "worker")
        traces.start(ProcessSettings(otlp_endpoint=received.endpoint), "worker")
        try:
            with spans.span("outer"):
                log.info("inside")
                logging.getLogger("a_library").warning("inside, too")
            log.info("outside")
        finally:
            traces.stop()
        (exported,) = received.spans
    inside, of_library, outside = lines(capsys)
    for line in (inside, of_library):
        assert (line["trace_id"], line["span_id"]) == (exported.trace_id, exported.span_id)
    assert not {"trace_id", "span_id"} & outside.keys()


# What must not be in it


def test_secrets_are_blanked_out_by_name_and_inside_urls(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    log.info(
        "connecting_to postgres://u:hunter2@h/d",
        password="hunter2",
        nested={"Authorization": "Bearer hunter2", "list": [{"x-api-key": "hunter2"}], "apiKey": "hunter2"},
        url="amqp://u:hunter2@h:5672/",
        text="libpq says password=hunter2 host=h, header Authorization: Bearer hunter2",
        query="https://h/p?token=hunter2&page=2",
        signed="Bearer hunter2hunter2",
        secret=SecretStr("hunter2"),
        settings=settings(),
        has_token=True,
        session_token=None,
        lease_token=7,
        key="uploads/a.pdf",
    )
    (line,) = lines(capsys)
    assert "hunter2" not in json.dumps(line)
    assert line["event"] == "connecting_to postgres://u:***@h/d"
    assert line["query"] == "https://h/p?token=***&page=2"
    assert (line["has_token"], line["session_token"]) == (True, None)
    assert (line["lease_token"], line["key"]) == (7, "uploads/a.pdf")


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_secret_in_an_exception_is_blanked_out_too(log_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(log_format=log_format), "worker")
    password = "".join(["hun", "ter2"])  # a traceback shows the line that raised
    for logger in (log, logging.getLogger("asyncpg")):
        try:
            raise TypeError(f"no route to postgres://u:{password}@h/d")
        except TypeError:
            logger.exception("lost")
    written = capsys.readouterr().err
    assert "hunter2" not in written
    assert "no route to postgres://u:***@h/d" in written


PASSWORDS = st.text(st.characters(exclude_categories=["Z", "C"])).map(lambda text: f"x7q{text}")


@given(before=st.text(), password=PASSWORDS, after=st.text())
def test_no_password_in_a_url_survives_wherever_it_stands(before: str, password: str, after: str) -> None:
    for written in (password, quote(password, safe="")):
        text = f"{before}postgresql://user:{written}@db:5432/waybill{after}"
        assert written not in redact_text(text)


@pytest.mark.parametrize("password", ["1", "12345", "p:w", "p@w", "p/w", "p#w?", "x" * 5000, "://a:b"])
def test_an_odd_password_in_a_url_is_still_one(password: str) -> None:
    assert redact_text(f"at postgresql://user:{password}@db/waybill.") == "at postgresql://user:***@db/waybill."


NAMES = ("password", "Password", "db_password", "PGPASSWORD", "secret", "client-secret", "credentials", "passphrase")
TOKENS = ("token", "accessToken", "refresh_token", "authorization", "Proxy-Authorization", "Cookie")
KEYS = ("api_key", "X-Api-Key", "apikey", "private_key", "signing_key")
SECRET_KEYS = st.sampled_from(NAMES + TOKENS + KEYS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.uuids() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(key=SECRET_KEYS, secret=PASSWORDS, around=VALUES, depth=st.integers(0, 12))
def test_no_value_under_a_secret_name_survives_however_deep_it_lies(
    key: str, secret: str, around: Any, depth: int
) -> None:
    value: Any = {key: secret, "around": around}
    for level in range(depth):
        value = [value, around] if level % 2 else {"inner": value}
    assert json.dumps(secret)[1:-1] not in as_json(plain_values(None, "info", {"event": "e", "value": value}))


@given(st.dictionaries(st.text(min_size=1), VALUES))
def test_every_value_becomes_one_line_of_json(fields: dict[str, Any]) -> None:
    line = as_json(plain_values(None, "info", {"event": "e", **fields}))
    assert "\n" not in line
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(
    "key", ["key", "lease_token", "lease-token", "idempotency_key", "storage_key", "tokenizer", "keyboard"]
)
def test_harmless_names_are_left_alone(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8080/jobs/a@b",
        "postgresql://user@h/d",
        "lease_token=7 is lost",
        "mail me at a@b.example: thanks",
        "no password was given",
    ],
)
def test_harmless_text_is_left_alone(text: str) -> None:
    assert redact_text(text) == text


def test_a_hostile_value_costs_no_time() -> None:
    for text in ("://a:" * 40_000, "token" * 40_000, "bearer " * 30_000, "password=" * 20_000, "a" * 200_000):
        started = threading.Event()
        finished: list[str] = []

        def work(text: str = text, started: threading.Event = started, finished: list[str] = finished) -> None:
            started.set()
            finished.append(redact_text(text))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(10)
        assert finished, f"still looking at {text[:20]!r}… after ten seconds"


# What must not go wrong


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class HostileMapping(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


def test_no_value_can_make_logging_fail(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    circle: list[Any] = []
    circle.append(circle)
    log.info(
        "odd",
        hostile=Hostile(),
        mapping=HostileMapping(a=1),
        circle=circle,
        keys={Hostile(): 1, (1, 2): 2, None: 3},
        nan=float("nan"),
        surrogate="\ud800",
        blob=b"\x00\xff",
        huge="x" * 1_000_000,
        many=list(range(100_000)),
        id=UUID(int=1),
        path=Path("a/b"),
        when=datetime(2026, 1, 2, tzinfo=UTC),
        error=ValueError("v"),
    )
    (line,) = lines(capsys)
    assert line["hostile"] == "<Hostile that cannot be shown>"
    assert line["id"] == "00000000-0000-0000-0000-000000000001"
    assert (line["path"], line["when"]) == ("a/b", "2026-01-02T00:00:00+00:00")
    assert len(json.dumps(line)) < 100_000


def test_a_library_that_formats_wrongly_harms_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    logging.getLogger("sloppy").warning("%d hunter2", "hunter2")
    assert capsys.readouterr().err == "a line of sloppy could not be logged: TypeError\n"


def test_exceptions_are_structured(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(), "worker")
    secret_local = "hunter2"
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError(len(secret_local)) from error
    except ValueError:
        log.exception("failed", stage="parse")
    (line,) = lines(capsys)
    outer, inner = line["exception"]
    assert (outer["exc_type"], outer["exc_value"]) == (
        "ValueError",
        "(a message of 1 characters, which may quote a document)",
    )
    assert inner["exc_type"] == "KeyError"
    assert outer["frames"][-1]["name"] == "test_exceptions_are_structured"
    assert all("locals" not in frame for frame in outer["frames"])


# How it looks


class Terminal:
    """Standard error as a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_lines_are_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    configure(settings(log_format="auto"), "worker")
    log.info("claimed", kind="convert_pdf")
    assert "\x1b[" in terminal.text
    assert "claimed" in terminal.text
    assert not terminal.text.startswith("{")

    terminal.text = ""
    monkeypatch.setenv("NO_COLOR", "1")
    configure(settings(log_format="auto"), "worker")
    log.info("claimed", kind="convert_pdf")
    assert "kind=convert_pdf" in terminal.text
    assert "\x1b[" not in terminal.text


def test_away_from_a_terminal_lines_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(log_format="auto"), "worker")
    log.info("claimed")
    assert lines(capsys)[0]["event"] == "claimed"


def test_a_document_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings(log_format="console"), "worker")
    log.info("parsed \x1b[2J", name="\x1b]0;owned\x07", text="a\rb")
    written = capsys.readouterr().err
    assert not set(written) & set("\x1b\x07\r")
    assert "\\x1b[2J" in written


# The file


def test_the_file_holds_json_whatever_the_terminal_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logs" / "waybill.log"
    configure(settings(log_format="console", log_file=path), "worker")
    log.info("claimed", password="hunter2")
    assert json.loads(path.read_text())["password"] == MASK
    assert "claimed" in capsys.readouterr().err


def test_a_file_that_cannot_be_opened_is_said_and_the_service_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    configure(settings(log_file=tmp_path / "file" / "waybill.log"), "worker")
    log.info("goes_on")
    complaint, line = lines(capsys)
    assert (complaint["event"], complaint["setting"]) == ("log_file_not_writable", "WAYBILL_LOG_FILE")
    assert line["event"] == "goes_on"


def test_a_full_disk_does_not_stop_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    configure(settings(log_file=full), "worker")
    log.info("goes_on")
    said, line = capsys.readouterr().err.splitlines()[::-1]
    assert "could not be logged: OSError" in said
    assert json.loads(line)["event"] == "goes_on"


def test_the_file_is_rotated_and_old_ones_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "waybill.log"
    configure(settings(log_file=path, log_file_max_bytes=2048, log_file_backups=2), "worker")
    for number in range(100):
        log.info("line", number=number, padding="x" * 100)
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["waybill.log", "waybill.log.1", "waybill.log.2"]
    assert all(each.stat().st_size <= 2048 for each in tmp_path.iterdir())
    kept = [
        json.loads(line)["number"]
        for name in ("waybill.log.2", "waybill.log.1", "waybill.log")
        for line in (tmp_path / name).read_text().splitlines()
    ]
    assert kept == list(range(100 - len(kept), 100))


def test_processes_that_share_the_file_lose_no_line(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = str(folder / "waybill.log")
    writers = [Forked("support.shared_log", log, str(writer), "500", folder=tmp_path) for writer in range(4)]
    assert [process.ended() for process in writers] == [(0, "")] * 4
    found = [
        (line["writer"], line["number"])
        for file in folder.iterdir()
        for line in map(json.loads, file.read_text().splitlines())
    ]
    assert len(list(folder.iterdir())) > 50, "it was rotated while all of them wrote"
    assert sorted(found) == [(writer, number) for writer in range(4) for number in range(500)]
