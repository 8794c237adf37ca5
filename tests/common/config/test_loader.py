"""A configuration is right as a whole, or every problem with it is named at once and no secret is shown."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from waybill.config import SETTINGS, ApiSettings, CommonSettings, DatabaseUrl, WorkerSettings, load, reference
from waybill.config.sources import bare_name, variable

URL = "postgresql://waybill:hunter2@db:5432/waybill"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the settings nor the `.env` of whoever runs the tests."""
    bare = {bare_name(field) for settings in SETTINGS for field in settings.model_fields.values()}
    for name in list(os.environ):
        if name.startswith("WAYBILL_") or name in bare:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def given(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def refused(capsys: pytest.CaptureFixture[str], settings: type[CommonSettings] = WorkerSettings) -> list[str]:
    """The lines printed for a configuration that must be refused."""
    with pytest.raises(SystemExit) as stopped:
        load(settings)
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_the_database_is_all_one_has_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL)
    settings = load(WorkerSettings)
    assert settings.database_url.asyncpg == URL
    assert settings.storage_url.folder == Path(".waybill/storage")
    assert settings.worker_handlers == ["waybill_worker.handlers"]
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
        WAYBILL_WORKER_HANDLERS=",",
        WAYBILL_HOME="~no-such-user/x",
    )
    assert sorted(refused(capsys)) == [
        "WAYBILL_DATABASE_PGBOUNCER: must be true or false, got perhaps",
        "WAYBILL_HEARTBEAT_INTERVAL: must be at most half of WAYBILL_LEASE_TTL (5 s), got 20.0, its default",
        "WAYBILL_HOME: starts with the home folder of a user this machine does not know, got ~no-such-user/x",
        "WAYBILL_LOG_LEVEL: must be one of 'debug', 'info', 'warning', 'error' or 'critical', got Chatty",
        "WAYBILL_SHUTDOWN_GRACE: must be seconds (20) or a number with a unit (500ms, 20s, 5m, 1h), got soon",
        "WAYBILL_WORKER_CONCURRENCY: must be at least 1, got 0",
        "WAYBILL_WORKER_HANDLERS: must name at least 1, got ,",
        "WAYBILL_WORKER_PROCESSES: must be a whole number, got many",
    ]


def test_the_line_names_the_variable_that_was_really_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, DATABASE_URL=URL, WORKER_CONCURRENCY="1001")
    assert refused(capsys) == ["WORKER_CONCURRENCY: must be at most 1000, got 1001"]


@pytest.mark.parametrize(
    "url",
    [
        "mysql://waybill:hunter2@db/waybill",
        "waybill:hunter2@db",
        "postgresql://waybill:hunter2#x@db:5432/waybill",
        "postgresql://waybill:hunter2/x@db:5432/waybill",
        "postgresql://waybill:hunter2?x@db:5432/waybill",
        "postgresql://waybill:hunter2@db:port/waybill",
        "postgresql://waybill:hunter2@db:5432/way bill",
        "postgresql://[waybill:hunter2@db",
        "hunter2",
    ],
)
def test_a_broken_database_url_is_refused_without_showing_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=url)
    (line,) = refused(capsys)
    assert line.startswith("WAYBILL_DATABASE_URL: ")
    assert "hunter2" not in line


def test_a_url_in_the_wrong_variable_does_not_show_its_password_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL, WAYBILL_DATABASE_POOL_SIZE=URL)
    (line,) = refused(capsys)
    assert line == ("WAYBILL_DATABASE_POOL_SIZE: must be a whole number, got postgresql://waybill:***@db:5432/waybill")


def test_a_settings_object_never_shows_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=f"{URL}?sslmode=require&password=hunter2")
    settings = load(CommonSettings)
    for shown in (repr(settings), str(settings), settings.model_dump_json(), f"{settings.database_url}"):
        assert "hunter2" not in shown
        assert "waybill:***@db:5432/waybill" in shown
    with pytest.raises(ValueError) as raised:
        CommonSettings.model_validate({"database_url": "mysql://u:hunter2@h/d"})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "PostgreSQL"])
def test_every_spelling_of_the_scheme_means_postgres(scheme: str) -> None:
    url = DatabaseUrl(f"{scheme}://u:p%40ss@h:5432/d?sslmode=disable")
    assert url.asyncpg == "postgresql://u:p%40ss@h:5432/d?sslmode=disable"
    assert url.sqlalchemy == "postgresql+asyncpg://u:p%40ss@h:5432/d?ssl=disable"


def test_a_socket_and_several_hosts_are_places_too() -> None:
    assert DatabaseUrl("postgresql://u@/d?host=/run/postgresql").shown == "postgresql://u@/d?host=/run/postgresql"
    assert DatabaseUrl("postgresql://u:p@[::1]:5432,b:5433/d").shown == "postgresql://u:***@[::1]:5432,b:5433/d"


@pytest.mark.parametrize(
    "place",
    [
        "s3://AKIAX:hunter2@bucket/prefix",
        "s3://bucket?secret_access_key=hunter2",
        "s3://bucket?access_key_id=hunter2",
        "s3://bucket?endpoint=http://u:hunter2@minio:9000",
        "s3://bucket?endpoint=hunter2",
        "s3://bucket?colour=hunter2",
        "s3://bucket#hunter2",
        "s3://bucket/a/../hunter2",
        "s3://?hunter2",
        "gs://bucket?region=hunter2",
        "az://container?account=hunter2@x",
        "ftp://hunter2/x",
        "file://hunter2/x",
        "file:///x?hunter2",
        "s3://[hunter2",
        "~hunter2/x",
    ],
)
def test_a_storage_url_with_a_secret_or_a_slip_in_it_is_refused_without_showing_it(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL, WAYBILL_STORAGE_URL=place)
    (line,) = refused(capsys)
    assert line.startswith("WAYBILL_STORAGE_URL: ")
    assert "hunter2" not in line


def test_a_storage_is_a_folder_or_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL, STORAGE_BASE_PATH="/srv/files")
    assert load(CommonSettings).storage_url.folder == Path("/srv/files")
    given(monkeypatch, WAYBILL_STORAGE_URL="file:///srv/more%20files")
    assert load(CommonSettings).storage_url.folder == Path("/srv/more files")
    given(monkeypatch, WAYBILL_STORAGE_URL="s3://waybill/a/b/?endpoint=http://minio:9000&region=eu-central-1")
    place = load(CommonSettings).storage_url
    assert (place.folder, place.bucket, place.prefix) == (None, "waybill", "a/b")
    assert (place.endpoint, place.region) == ("http://minio:9000", "eu-central-1")
    given(monkeypatch, WAYBILL_STORAGE_URL="az://waybill?account=acme")
    assert load(CommonSettings).storage_url.account == "acme"


def test_the_storage_secret_is_never_shown_and_needs_its_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL, WAYBILL_STORAGE_URL="s3://bucket", WAYBILL_STORAGE_SECRET="hunter3")
    (line,) = refused(capsys)
    assert line == "WAYBILL_STORAGE_SECRET: must be set together with WAYBILL_STORAGE_KEY_ID, or neither"
    given(monkeypatch, WAYBILL_STORAGE_KEY_ID="AKIAX")
    settings = load(CommonSettings)
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert "hunter3" not in shown


def test_worker_processes_get_the_settings_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL)
    settings = load(WorkerSettings)
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301


def test_the_full_name_wins_over_the_bare_one_and_the_environment_over_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path(".env").write_text(
        "WAYBILL_DATABASE_URL=postgresql://from-file/d\nWAYBILL_LOG_LEVEL=error\nWORKER_CONCURRENCY=7\n"
    )
    given(monkeypatch, DATABASE_URL="postgresql://bare/d", LOG_LEVEL="debug", WAYBILL_LOG_LEVEL="Warning")
    settings = load(WorkerSettings)
    assert settings.database_url.url == "postgresql://from-file/d"
    assert settings.log_level == "warning"
    assert settings.worker_concurrency == 7


def test_a_variable_set_to_nothing_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL="", DATABASE_URL=URL, WAYBILL_LOG_FILE="", WAYBILL_LEASE_TTL="")
    settings = load(WorkerSettings)
    assert (settings.database_url.url, settings.log_file, settings.lease_ttl) == (URL, None, 60)


def test_an_unreadable_env_file_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path(".env").write_bytes(b"WAYBILL_HOME=\xff\xfe")
    (line,) = refused(capsys)
    assert line.startswith(".env: cannot be read")


@pytest.mark.parametrize(
    ("text", "seconds"), [("20", 20), ("1.5", 1.5), ("500ms", 0.5), ("20s", 20), ("5 m", 300), ("1H", 3600)]
)
def test_durations_are_written_as_people_write_them(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL, WAYBILL_POLL_INTERVAL=text)
    assert load(WorkerSettings).poll_interval == seconds


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1d", "0", "", "٣"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        WorkerSettings.model_validate({"database_url": URL, "poll_interval": text})


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=URL, WAYBILL_WORKER_QUEUES=" fast, slow,,fast ")
    assert load(WorkerSettings).worker_queues == ["fast", "slow"]


def test_a_worker_knows_its_pod_from_the_downward_api(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, DATABASE_URL=URL, POD_NAME="worker-1", POD_NAMESPACE="waybill", POD_UID="4f1c")
    settings = load(WorkerSettings)
    assert settings.worker_pod_name == "worker-1"
    assert settings.worker_pod_namespace == "waybill"
    assert settings.worker_pod_uid == "4f1c"


def test_a_port_that_kubernetes_set_for_a_service_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, DATABASE_URL=URL, WAYBILL_API_PORT="tcp://10.0.0.7:8080")
    (line,) = refused(capsys, ApiSettings)
    assert "enableServiceLinks: false" in line


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


def test_every_setting_is_documented_where_it_is_declared() -> None:
    for settings in SETTINGS:
        for name, field in settings.model_fields.items():
            assert field.description, f"{settings.__name__}.{name} says nothing about itself"
            assert f"`{variable(name)}`" in reference()


def test_the_reference_is_current(pytestconfig: pytest.Config) -> None:
    written = (pytestconfig.rootpath / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == reference(), "run `make docs`"


def test_the_reference_holds_nothing_of_the_machine_it_was_written_on() -> None:
    assert str(Path.home()) not in reference()
    assert "number of CPUs" in reference()


def invoke(*arguments: str) -> Any:
    from waybill_cli.config import app

    return CliRunner().invoke(app, ["reference", *arguments])


def test_the_command_writes_the_reference_and_notices_when_it_is_old(tmp_path: Path) -> None:
    file = tmp_path / "docs" / "configuration.md"
    assert invoke("--check", str(file)).exit_code == 1
    assert invoke("--write", str(file)).exit_code == 0
    assert invoke("--check", str(file)).exit_code == 0
    assert invoke().stdout == file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace("8080", "8081"), encoding="utf-8")
    old = invoke("--check", str(file))
    assert old.exit_code == 1
    assert "--write" in old.stderr
