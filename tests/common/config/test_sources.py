"""The names under which a setting may be given, and which of them wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.config.conftest import URL, given, refused
from waybill.config import CommonSettings, ProcessSettings, load
from waybill.config.registry import all_settings
from waybill.config.sources import bare_names
from waybill_convert.settings import ConvertSettings
from waybill_engine.settings import WorkerSettings


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


def test_a_worker_knows_its_pod_from_the_downward_api(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, DATABASE_URL=URL, POD_NAME="worker-1", POD_NAMESPACE="waybill", POD_UID="4f1c")
    settings = load(WorkerSettings)
    assert settings.worker_pod_name == "worker-1"
    assert settings.worker_pod_namespace == "waybill"
    assert settings.worker_pod_uid == "4f1c"


@pytest.mark.parametrize(
    ("settings", "variables", "field", "value"),
    [
        (ConvertSettings, {"GATEWAY_TIMEOUT": "180000"}, "gateway_timeout", 180.0),
        (ConvertSettings, {"GATEWAY_TIMEOUT": "0.5"}, "gateway_timeout", 0.0005),
        (ConvertSettings, {"GATEWAY_TIMEOUT": "3m"}, "gateway_timeout", 180.0),  # its own unit is taken at its word
        (ConvertSettings, {"GATEWAY_URL": "http://gateway:8000"}, "gateway_url", "http://gateway:8000"),
        (ConvertSettings, {"MAX_RETRY_ATTEMPTS": "5"}, "convert_retries", 5),
        (ConvertSettings, {"MAX_UPLOAD_MB": "20"}, "max_upload_mb", 20),
        (ConvertSettings, {"PDF_TTL_DAYS": "14"}, "pdf_ttl_days", 14.0),
        (ConvertSettings, {"XML_TTL_DAYS": "60"}, "xml_ttl_days", 60.0),
        (WorkerSettings, {"POLL_INTERVAL": "2500"}, "poll_interval", 2.5),
        (WorkerSettings, {"BPC_JOBS_POLL_INTERVAL_MS": "1000"}, "poll_interval", 1.0),
        (WorkerSettings, {"LEASE_TTL_MINUTES": "5"}, "lease_ttl", 300.0),
        (WorkerSettings, {"BPC_JOBS_LEASE_SECONDS": "90"}, "lease_ttl", 90.0),
        (WorkerSettings, {"BPC_JOBS_LEASE_RENEW_SECONDS": "25"}, "heartbeat_interval", 25.0),
        (WorkerSettings, {"WORKER_CONCURRENCY": "3"}, "worker_concurrency", 3),
        (CommonSettings, {"DATABASE_MAX_CONNECTIONS": "7"}, "database_pool_size", 7),
        (CommonSettings, {"DATABASE_TIMEOUT": "30"}, "database_connect_timeout", 30.0),
        (CommonSettings, {"LOG_LEVEL": "INFO"}, "log_level", "info"),
        (CommonSettings, {"LOG_FORMAT": "json"}, "log_format", "json"),
        (CommonSettings, {"LOG_FILE_PATH": "/shared/worker.log"}, "log_file", Path("/shared/worker.log")),
        (CommonSettings, {"BPC_LOG_JSON": "true"}, "log_format", "json"),
        (CommonSettings, {"BPC_LOG_JSON": "False"}, "log_format", "console"),
    ],
)
def test_the_names_and_units_of_the_first_notes_work(
    monkeypatch: pytest.MonkeyPatch,
    settings: type[ProcessSettings],
    variables: dict[str, str],
    field: str,
    value: object,
) -> None:
    given(monkeypatch, DATABASE_URL=URL, **variables)
    assert getattr(load(settings), field) == value


def test_a_database_may_be_given_in_parts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given(monkeypatch, BPC_DB_HOST="db")
    assert load(CommonSettings).database_url.url == "postgresql://postgres:postgres@db:5432/bpc"
    given(monkeypatch, BPC_DB_PORT="55432", BPC_DB_USER="bpc", BPC_DB_PASSWORD="p@ss/word", BPC_DB_NAME="bpc_test")
    assert load(CommonSettings).database_url.url == "postgresql://bpc:p%40ss%2Fword@db:55432/bpc_test"
    given(monkeypatch, BPC_DB_PORT="hunter2")
    (line,) = refused(capsys)
    assert line.startswith("BPC_DB_HOST: has no valid port")
    assert "hunter2" not in line
    given(monkeypatch, DATABASE_URL=URL)
    assert load(CommonSettings).database_url.url == URL, "the whole URL wins over its parts"


def test_a_bad_value_is_reported_under_the_name_and_in_the_unit_it_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, DATABASE_URL=URL, POLL_INTERVAL="0", LEASE_TTL_MINUTES="soon", BPC_LOG_JSON="perhaps")
    assert sorted(refused(capsys)) == [
        "BPC_LOG_JSON: must be one of 'auto', 'console' or 'json', got perhaps",
        "LEASE_TTL_MINUTES: must be seconds (20) or a number with a unit (500ms, 20s, 5m, 1h), got soon",
        "POLL_INTERVAL: must be more than 0, got 0",
    ]


def test_no_two_settings_share_a_bare_name_by_accident() -> None:
    owners: dict[str, set[str]] = {}
    for settings in all_settings():
        for name, field in settings.model_fields.items():
            for bare in bare_names(field):
                owners.setdefault(bare.name, set()).add(name)
    assert {bare: names for bare, names in owners.items() if len(names) > 1} == {}
