"""Opens the storage of a URL. obstore is only imported for object stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from waybill.config import CommonSettings
from waybill.config.storage_url import StorageUrl
from waybill.errors import IoFailure
from waybill.storage.interface import Storage
from waybill.storage.local import LocalStorage
from waybill.storage.measured_storage import MeasuredStorage
from waybill.storage.owner_mark import MarkedStorage
from waybill.storage.storage_move import MovingStorage
from waybill.storage.traced_storage import TracedStorage

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

    from waybill.db import Database


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """How to access an object store. If the credentials are None, the cloud's own variables or the identity of the pod
    or machine are used."""

    key_id: str | None = None
    secret: SecretStr | None = None
    timeout: float = 30.0
    """Seconds for which the store may send nothing within a request."""
    backoff: float = 0.2
    """The most seconds before the first retry of a request. It doubles for each further one."""


def storage_of(settings: CommonSettings) -> Storage:
    """The storage in a service's settings."""
    access = StorageAccess(settings.storage_key_id, settings.storage_secret, settings.storage_timeout)
    return open_storage(settings.storage_url, access)


def service_storage(settings: CommonSettings, database: Database) -> Storage:
    """The storage in a service's settings, used only while it carries the mark of the database (`owner_mark`).

    During a move it is both places (`moving`). Its operations are spans, and measured.
    """
    place, old_place = settings.storage_url, settings.storage_old_url
    storage = MarkedStorage(storage_of(settings), database, strict=place.folder is not None)
    if old_place is None:
        return TracedStorage(MeasuredStorage(storage))
    access = StorageAccess(
        settings.storage_old_key_id or settings.storage_key_id,
        settings.storage_old_secret or settings.storage_secret,
        settings.storage_timeout,
    )
    old = open_storage(old_place, access)
    moving = MovingStorage(storage, MarkedStorage(old, database, strict=old_place.folder is not None))
    return TracedStorage(MeasuredStorage(moving))


def open_storage(url: StorageUrl | str | Path, access: StorageAccess | None = None) -> Storage:
    """The storage at a URL (see `StorageUrl`) or path. Nothing is accessed yet, so errors show at the first use."""
    place = StorageUrl.parse(url)
    if place.folder is not None:
        return LocalStorage(place.folder)
    from obstore.exceptions import BaseError

    from waybill.storage.objects import ObjectStorage

    try:
        store = _store(place, access or StorageAccess())
    except BaseError:
        # Its own message may quote a secret.
        raise IoFailure(
            f"The storage {place} cannot be opened: the account is missing, or the secret is invalid."
        ) from None
    return ObjectStorage(store, str(place))


def _store(place: StorageUrl, access: StorageAccess) -> ObjectStore:
    from obstore.store import AzureStore, GCSStore, S3Store

    client, retry = _client(place, access.timeout), _retry(access)
    secret = access.secret.get_secret_value() if access.secret else None
    prefix = place.prefix or None
    if place.scheme == "s3":
        s3 = {
            "endpoint": place.endpoint,
            "region": place.region,
            "access_key_id": access.key_id,
            "secret_access_key": secret,
            # Send one request per object, because not every S3 server supports the bulk request.
            "disable_bulk_delete": True,
        }
        return S3Store(place.bucket, prefix=prefix, config=_given(s3), client_options=client, retry_config=retry)
    if place.scheme == "gs":
        gs = {"base_url": place.endpoint, "service_account_key": secret}
        return GCSStore(place.bucket, prefix=prefix, config=_given(gs), client_options=client, retry_config=retry)
    az = {"endpoint": place.endpoint, "account_name": place.account or access.key_id, "account_key": secret}
    return AzureStore(place.bucket, prefix=prefix, config=_given(az), client_options=client, retry_config=retry)


def _given(config: Mapping[str, object]) -> Any:
    return {name: value for name, value in config.items() if value is not None}


def _client(place: StorageUrl, timeout: float) -> ClientConfig:
    return {
        "allow_http": (place.endpoint or "").startswith("http://"),
        "connect_timeout": timedelta(seconds=min(5.0, timeout)),
        # This limits the time between two packets. The whole request has no real limit, because the reader decides how
        # long a download takes.
        "read_timeout": timedelta(seconds=timeout),
        "timeout": timedelta(days=1),
        "user_agent": "waybill",
    }


def _retry(access: StorageAccess) -> RetryConfig:
    # This retries for a few seconds. In a longer outage, the job is retried.
    return {
        "max_retries": 4,
        "retry_timeout": timedelta(seconds=2 * access.timeout),
        "backoff": {
            "init_backoff": timedelta(seconds=access.backoff),
            "max_backoff": timedelta(seconds=16 * access.backoff),
            "base": 2,
        },
    }
