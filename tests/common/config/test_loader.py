"""A configuration is valid as a whole, or every problem with it is printed at once, without any secret."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from common.config.conftest import URL, given, refused
from waybill.config import ApiSettings, CommonSettings, DatabaseUrl, load
from waybill.config.loader import load_all
from waybill_engine.settings import WorkerSettings


def test_the_database_is_all_one_has_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL)
    settings = load(WorkerSettings)
    assert settings.database_url.asyncpg == URL
    assert settings.storage_url.folder == Path(".waybill/storage")
    assert settings.worker_handlers == []
    assert (settings.lease_ttl, settings.heartbeat_interval, settings.poll_interval) == (60, 20, 5)


def test_without_a_database_the_error_shows_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = refused(capsys)
    assert line.startswith("WAYBILL_DATABASE_URL: is not set")
    assert "postgresql://" in line


def test_every_problem_has_its_own_line_and_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(
        monkeypatch,
        WAYBILL_DATABASE_URL=URL,
        WAYBILL_WORKER_CONCURRENCY="0",
        WAYBILL_WORKER_PROCESSES="many",
        WAYBILL_LOG_LEVEL="Chatty",
        WAYBILL_LEASE_TTL="10",
        WAYBILL_SHUTDOWN_GRACE="soon",
        WAYBILL_DATABASE_PGBOUNCER="perhaps",
        WAYBILL_WORKER_POOL_SIZE="1025",
        WAYBILL_HOME="~no-such-user/x",
    )
    assert sorted(refused(capsys)) == [
        "WAYBILL_DATABASE_PGBOUNCER: must be true or false, got perhaps",
        "WAYBILL_HEARTBEAT_INTERVAL: must be at most half of WAYBILL_LEASE_TTL (5 s), got 20.0, its default",
        "WAYBILL_HOME: starts with the home folder of a user this machine does not know, got ~no-such-user/x",
        "WAYBILL_LOG_LEVEL: must be one of 'debug', 'info', 'warning', 'error' or 'critical', got Chatty",
        "WAYBILL_SHUTDOWN_GRACE: must be seconds (20) or a number with a unit (500ms, 20s, 5m, 1h), got soon",
        "WAYBILL_WORKER_CONCURRENCY: must be at least 1, got 0",
        "WAYBILL_WORKER_POOL_SIZE: must be at most 1024, got 1025",
        "WAYBILL_WORKER_PROCESSES: must be a whole number, got many",
    ]


def test_the_line_names_the_variable_that_was_really_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, DATABASE_URL=URL, WORKER_CONCURRENCY="1001")
    assert refused(capsys) == ["WORKER_CONCURRENCY: must be at most 1000, got 1001"]


def test_a_url_in_the_wrong_variable_does_not_show_its_password_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL, WAYBILL_DATABASE_POOL_SIZE=URL)
    (line,) = refused(capsys)
    assert line == ("WAYBILL_DATABASE_POOL_SIZE: must be a whole number, got postgresql://waybill:***@db:5432/waybill")


def test_worker_processes_get_the_settings_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL)
    settings = load(WorkerSettings)
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301


def test_an_unreadable_env_file_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path(".env").write_bytes(b"WAYBILL_HOME=\xff\xfe")
    (line,) = refused(capsys)
    assert line.startswith(".env: cannot be read")


def test_a_slip_of_the_pen_is_pointed_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given(
        monkeypatch,
        WAYBILL_DATABASE_URL=URL,
        WAYBILL_WORKER_CONCURENCY="3",
        WAYBILL_DATABASEURL=URL,
        WAYBILL_API_PORT="8080",  # another service's
        WAYBILL_SOMETHING_NEW="x",  # a later release's
        WAYBILL_TEST_DATABASE_URL=URL,  # the tests'
    )
    load(WorkerSettings)
    assert capsys.readouterr().err.splitlines() == [
        "warning: WAYBILL_DATABASEURL: no such setting; did you mean WAYBILL_DATABASE_URL?",
        "warning: WAYBILL_WORKER_CONCURENCY: no such setting; did you mean WAYBILL_WORKER_CONCURRENCY?",
    ]


def test_several_classes_are_loaded_together_and_every_problem_is_printed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, DATABASE_URL=URL)
    loaded = load_all([ApiSettings, WorkerSettings])
    assert isinstance(loaded[ApiSettings], ApiSettings)
    given(monkeypatch, WAYBILL_LOG_LEVEL="loud", WAYBILL_API_PORT="0", WAYBILL_LEASE_TTL="soon")
    with pytest.raises(SystemExit) as stopped:
        load_all([ApiSettings, WorkerSettings])
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert sorted(line.split(":")[0] for line in lines) == [
        "WAYBILL_API_PORT",
        "WAYBILL_LEASE_TTL",
        "WAYBILL_LOG_LEVEL",
    ]


def test_a_default_of_the_caller_gives_way_to_whatever_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    own = DatabaseUrl("postgresql://own/d")
    assert load(CommonSettings, database_url=own).database_url == own
    given(monkeypatch, DATABASE_URL=URL)
    assert load(CommonSettings, database_url=own).database_url.url == URL
