"""The location of the storage, in one variable: a path, or a URL without secrets.

/var/lib/waybill            file:///var/lib/waybill
s3://bucket/prefix          s3://bucket?endpoint=http://minio:9000&region=us-east-1
gs://bucket/prefix
az://container/prefix?account=name
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from waybill.redaction import is_secret_key

_PARAMETERS = {"s3": ("endpoint", "region"), "gs": ("endpoint",), "az": ("account", "endpoint")}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}", re.ASCII)
_PREFIX = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9-]+", re.ASCII)


def _rejected(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("waybill", "{sentence}", {"sentence": sentence})


@dataclass(frozen=True, slots=True)
class StorageUrl:
    """A parsed location. It contains no secret, so it may be shown."""

    text: str
    scheme: str
    folder: Path | None = None
    bucket: str = ""
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    account: str | None = None

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, value: object) -> StorageUrl:
        if isinstance(value, StorageUrl):
            return value
        if isinstance(value, Path):
            return _folder(value, str(value))
        if not isinstance(value, str) or not value.strip():
            raise _rejected("must be a path or a URL")
        text = value.strip()
        if "://" not in text:
            return _folder(Path(text), text)
        try:
            parts = urlsplit(text)
        except ValueError:
            raise _rejected("is not a valid URL") from None
        if parts.scheme == "file":
            return _file(parts, text)
        if parts.scheme in _PARAMETERS:
            return _bucket(parts, text)
        raise _rejected("must be a path, or a URL that starts with file://, s3://, gs:// or az://")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.parse, serialization=core_schema.to_string_ser_schema())


def _folder(path: Path, text: str) -> StorageUrl:
    try:
        return StorageUrl(text, "file", folder=path.expanduser())
    except RuntimeError:
        raise _rejected("starts with the home folder of a user this machine does not know") from None


def _file(parts: SplitResult, text: str) -> StorageUrl:
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path:
        raise _rejected("must look like file:///folder, with three slashes and nothing after the folder")
    return _folder(Path(unquote(parts.path)), text)


def _bucket(parts: SplitResult, text: str) -> StorageUrl:
    if "@" in parts.netloc:
        raise _rejected("must not hold credentials; give them in WAYBILL_STORAGE_KEY_ID and WAYBILL_STORAGE_SECRET")
    if not _BUCKET.fullmatch(parts.netloc):
        raise _rejected(f"must name a bucket: {parts.scheme}://bucket/prefix")
    prefix = parts.path.strip("/")
    if prefix and not all(_PREFIX.fullmatch(part) for part in prefix.split("/")):
        raise _rejected("has a prefix with something else in it than A-Z a-z 0-9 . _ = - and slashes")
    if parts.fragment:
        raise _rejected("has a '#' in it")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in given.items():
        if is_secret_key(name):
            raise _rejected("must not hold credentials; give them in WAYBILL_STORAGE_KEY_ID and WAYBILL_STORAGE_SECRET")
        if name not in _PARAMETERS[parts.scheme]:
            known = " or ".join(_PARAMETERS[parts.scheme])
            raise _rejected(f"has a parameter that is not known for {parts.scheme}://; it takes {known}")
        if not (_is_endpoint(value) if name == "endpoint" else _WORD.fullmatch(value)):
            raise _rejected(f"has something in {name}= that cannot be one")
    return StorageUrl(text, parts.scheme, None, parts.netloc, prefix, **given)


def _is_endpoint(value: str) -> bool:
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - raises if it is invalid
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in value and not parts.query
