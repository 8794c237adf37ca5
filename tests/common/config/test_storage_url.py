"""Where the storage is: a folder or a bucket, never with a secret in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.config.conftest import URL, given, refused
from waybill.config import CommonSettings, load


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
