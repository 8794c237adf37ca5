"""The value types of the settings: how people write a duration, a list or a database URL in one variable.

Every rejection is a `PydanticCustomError`, so that its sentence reaches people unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from pydantic_settings import NoDecode

from waybill.redaction import MASK, is_secret_key


def _rejected(sentence: str) -> PydanticCustomError:
    # Braces would be read as placeholders of the error's context.
    return PydanticCustomError("waybill", "{sentence}", {"sentence": sentence})


@dataclass(frozen=True, slots=True)
class Bare:
    """Another variable that sets a field, without our prefix, because one of the product's first notes uses its name.

    A field may have several. `unit` is what a plain number means there; `convert` turns what was written into what the
    field understands, and may look at other variables to do so. Say in `note` what people must know to use it.
    """

    name: str
    unit: Literal["ms", "s", "m", "h"] | None = None
    convert: Callable[[str, Mapping[str, str]], str] | None = None
    note: str = ""

    def read(self, given: Mapping[str, str]) -> str:
        """The field's value as text, from all variables that were given."""
        text = given[self.name]
        if self.convert is not None:
            return self.convert(text, given)
        if self.unit is not None and _NUMBER.fullmatch(text.strip()):
            return f"{text.strip()}{self.unit}"
        return text

    @property
    def explanation(self) -> str:
        """For the reference: what is special about this name, or nothing."""
        return self.note or (_UNIT_NAMES[self.unit] if self.unit else "")


_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_UNIT_NAMES = {"ms": "in milliseconds", "s": "in seconds", "m": "in minutes", "h": "in hours"}


@dataclass(frozen=True, slots=True)
class Named:
    """What the reference calls a type whose Python name says too little."""

    name: str


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseUrl:
    """Where Postgres is. It shows itself without the password, wherever it ends up."""

    url: str
    """As it was given, password included: for drivers, never for a log."""

    def __post_init__(self) -> None:
        scheme, separator, _ = self.url.partition("://")
        if not separator or scheme.lower() not in ("postgresql", "postgres", "postgresql+asyncpg"):
            raise _rejected("must look like postgresql://user:password@host:5432/database")
        try:
            parts = urlsplit(self.url)
        except ValueError:
            raise _rejected("must look like postgresql://user:password@host:5432/database") from None
        _check_ports(parts.netloc.rpartition("@")[2])
        if parts.fragment or re.search(r"\s", self.url):
            raise _rejected("has a '#' or a space in it; percent-encode special characters of the password")

    @property
    def asyncpg(self) -> str:
        return urlunsplit(urlsplit(self.url)._replace(scheme="postgresql"))

    @property
    def servers(self) -> list[str]:
        """The same for asyncpg, one URL for each server that it names."""
        parts = urlsplit(self.asyncpg)
        userinfo, at, hosts = parts.netloc.rpartition("@")
        return [urlunsplit(parts._replace(netloc=f"{userinfo}{at}{host}")) for host in hosts.split(",")]

    @property
    def names_session_kind(self) -> bool:
        """Whether it says which kind of server it wants (`target_session_attrs`)."""
        return any(name == "target_session_attrs" for name, _ in parse_qsl(urlsplit(self.url).query))

    @property
    def shown(self) -> str:
        """For people: user, host, port and database, never the password."""
        parts = urlsplit(self.url)
        userinfo, at, hosts = parts.netloc.rpartition("@")
        user, colon, _password = userinfo.partition(":")
        query = [(name, MASK if is_secret_key(name) else value) for name, value in parse_qsl(parts.query)]
        netloc = f"{user}{colon}{MASK if colon else ''}{at}{hosts}"
        return urlunsplit(("postgresql", netloc, parts.path, urlencode(query, safe="*/"), ""))

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"DatabaseUrl({self.shown!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def parse(value: object) -> DatabaseUrl:
            if isinstance(value, DatabaseUrl):
                return value
            if not isinstance(value, str):
                raise _rejected("must be a URL")
            return cls(value.strip())

        # It is serialised as text, which leaves the password out.
        return core_schema.no_info_plain_validator_function(parse, serialization=core_schema.to_string_ser_schema())


def _check_ports(hosts: str) -> None:
    """Most broken URLs have `/`, `#` or `?` in the password, which leaves half of it where the port goes."""
    for host in hosts.split(","):
        _, colon, port = host.rpartition("]")[2].rpartition(":")
        if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise _rejected("has no valid port (1 to 65535); percent-encode special characters of the password")


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", re.ASCII)


def _parse_seconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip().lower())
    if match is None:
        raise _rejected("must be seconds (20) or a number with a unit (500ms, 20s, 5m, 1h)")
    return float(match[1]) * _UNITS[match[2] or "s"]


Seconds = Annotated[float, Named("duration"), BeforeValidator(_parse_seconds), Field(ge=0, allow_inf_nan=False)]
"""A duration: `20`, `20s`, `500ms`, `5m`, `1h`."""


Days = Annotated[float, Named("days"), Field(ge=0, allow_inf_nan=False)]


def _split(value: object) -> object:
    if isinstance(value, str):
        value = [item.strip() for item in value.split(",") if item.strip()]
    return list(dict.fromkeys(value)) if isinstance(value, list) else value


CommaList = Annotated[list[str], Named("list"), NoDecode, BeforeValidator(_split)]
"""Several names in one variable, separated by commas. A repeated name counts once."""


def parse_port(value: object) -> object:
    # Kubernetes sets <SERVICE>_PORT=tcp://… in every pod beside a Service named waybill-api.
    if isinstance(value, str) and value.startswith("tcp://"):
        raise _rejected("was set by Kubernetes for a Service; give the pod `enableServiceLinks: false`")
    return value


Port = Annotated[int, BeforeValidator(parse_port), Field(ge=1, le=65535)]


def _expand(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise _rejected("starts with the home folder of a user this machine does not know") from None


LocalPath = Annotated[Path, AfterValidator(_expand)]
"""A path on this machine; `~` is the user's home."""
