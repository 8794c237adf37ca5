"""Values as people write them: database URLs, durations, lists, ports."""

from __future__ import annotations

import pytest

from common.config.conftest import URL, given, refused
from waybill.config import ApiSettings, CommonSettings, DatabaseUrl, load
from waybill_engine.settings import WorkerSettings


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "PostgreSQL"])
def test_every_spelling_of_the_scheme_means_postgres(scheme: str) -> None:
    url = DatabaseUrl(f"{scheme}://u:p%40ss@h:5432/d?sslmode=disable")
    assert url.asyncpg == "postgresql://u:p%40ss@h:5432/d?sslmode=disable"


def test_a_url_names_its_servers_one_by_one() -> None:
    assert DatabaseUrl("postgres://u:a%2Cb@[::1]:1,two/d?sslmode=disable").servers == [
        "postgresql://u:a%2Cb@[::1]:1/d?sslmode=disable",
        "postgresql://u:a%2Cb@two/d?sslmode=disable",
    ]
    assert DatabaseUrl("postgresql://u@/d?host=/run/postgresql").servers == ["postgresql://u@/d?host=/run/postgresql"]


def test_which_kind_of_server_a_url_asks_for() -> None:
    assert not DatabaseUrl("postgresql://u@h/d?sslmode=disable").names_session_kind
    assert DatabaseUrl("postgresql://u@h/d?target_session_attrs=any").names_session_kind


def test_a_socket_and_several_hosts_are_places_too() -> None:
    assert DatabaseUrl("postgresql://u@/d?host=/run/postgresql").shown == "postgresql://u@/d?host=/run/postgresql"
    assert DatabaseUrl("postgresql://u:p@[::1]:5432,b:5433/d").shown == "postgresql://u:***@[::1]:5432,b:5433/d"


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


def test_a_port_that_kubernetes_set_for_a_service_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, DATABASE_URL=URL, WAYBILL_API_PORT="tcp://10.0.0.7:8080")
    (line,) = refused(capsys, ApiSettings)
    assert "enableServiceLinks: false" in line


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


def test_a_settings_object_never_shows_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, WAYBILL_DATABASE_URL=f"{URL}?sslmode=require&password=hunter2")
    settings = load(CommonSettings)
    for shown in (repr(settings), str(settings), settings.model_dump_json(), f"{settings.database_url}"):
        assert "hunter2" not in shown
        assert "waybill:***@db:5432/waybill" in shown
    with pytest.raises(ValueError) as raised:
        CommonSettings.model_validate({"database_url": "mysql://u:hunter2@h/d"})
    assert "hunter2" not in str(raised.value)
