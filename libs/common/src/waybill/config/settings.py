"""The platform's settings: name, type, default and reason of each, where it is declared.

`loader` reads them from the environment; `reference` writes docs/configuration.md and `.env.example` from them. A field
`lease_ttl` is the variable `WAYBILL_LEASE_TTL`; `Bare` names an unprefixed variable that works too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from waybill.config.metrics_settings import MetricsSettings, PortOrNone
from waybill.config.sources import BareNames
from waybill.config.storage_url import StorageUrl
from waybill.config.trace_settings import TraceSettings
from waybill.config.values import Bare, CommaList, DatabaseUrl, Days, LocalPath, Port, Seconds

LogFormat = Literal["auto", "console", "json"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
_Lower = BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)


def _format_of_flag(flag: str, given: Mapping[str, str]) -> str:  # noqa: ARG001
    words = {"true": "json", "1": "json", "yes": "json", "false": "console", "0": "console", "no": "console"}
    return words.get(flag.strip().lower(), flag)


def _url_of_parts(host: str, given: Mapping[str, str]) -> str:
    """The defaults are those of the note that names these variables."""
    user, password, name = (
        quote(given.get(f"BPC_DB_{part}", default), safe="")
        for part, default in (("USER", "postgres"), ("PASSWORD", "postgres"), ("NAME", "bpc"))
    )
    return f"postgresql://{user}:{password}@{host}:{given.get('BPC_DB_PORT', '5432')}/{name}"


class ProcessSettings(TraceSettings, MetricsSettings):
    """Settings of every process, including those that need no database."""

    model_config = SettingsConfigDict(
        env_prefix="WAYBILL_",
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,  # charts and compose files set "" when they mean "not set"
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,  # the input may be a secret
        validate_default=True,
    )

    title: ClassVar[str] = "Every process"

    home: LocalPath = Field(
        Path(".waybill"),
        description="The folder for everything Waybill keeps on this machine. As root, the embedded database"
        " may have to live under /var/lib/waybill instead; `waybill up` prints where.",
    )
    log_format: Annotated[
        LogFormat,
        _Lower,
        Bare("LOG_FORMAT"),
        Bare("BPC_LOG_JSON", convert=_format_of_flag, note="`true` is `json`, `false` is `console`"),
    ] = Field(
        "auto",
        description="How the log is written. `json` writes one JSON object per line, `console` writes lines for people;"
        " `auto` is `console` on a terminal and under `waybill up`, and `json` otherwise.",
    )
    log_level: Annotated[LogLevel, _Lower, Bare("LOG_LEVEL")] = Field(
        "info", description="The lowest level that is logged."
    )
    log_file: Annotated[LocalPath | None, Bare("LOG_FILE_PATH")] = Field(
        None,
        description="A file that also gets the log, as JSON lines. Not set by default, because a container's log"
        " belongs on its standard error. Several processes may share the file.",
    )
    log_file_max_bytes: int = Field(
        10_000_000,
        ge=1024,
        description="The size in bytes at which the log file is rotated, so that it never fills a disk.",
    )
    log_file_backups: int = Field(
        5, ge=1, le=1000, description="How many rotated log files are kept beside the current one."
    )

    access_log: bool = Field(
        True,
        description="Whether the API and the gateway log a line for each request. Switch it off if a proxy in front of"
        " them does, and you do not need the job's id in it.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # Bare names last, so that a prefixed one wins wherever it is written.
        return init_settings, env_settings, dotenv_settings, BareNames(settings_cls)


class CommonSettings(ProcessSettings):
    """Settings of every service that uses the database, and of the command line."""

    title: ClassVar[str] = "Every service with a database"

    database_url: Annotated[
        DatabaseUrl,
        NoDecode,
        Bare("DATABASE_URL"),
        Bare(
            "BPC_DB_HOST",
            convert=_url_of_parts,
            note="with `BPC_DB_PORT`, `BPC_DB_USER`, `BPC_DB_PASSWORD`, `BPC_DB_NAME`",
        ),
    ] = Field(
        examples=["postgresql://waybill:secret@localhost:5432/waybill"],
        description="Where Postgres is. Required, because it is the one server that Waybill cannot do without."
        " `postgres://` and `postgresql+asyncpg://` mean the same. Several servers are separated by commas"
        " (`postgresql://waybill:secret@one:5432,two:5432/waybill`): Waybill uses the one that writes, and finds"
        " the next one after a failover. The password is never logged.",
    )
    database_pool_size: Annotated[int, Bare("DATABASE_MAX_CONNECTIONS")] = Field(
        10,
        ge=1,
        le=1000,
        description="How many connections a process of the API or the janitor shares for ordinary reads and writes. It"
        " is not all that the process opens: up to eleven more are for hot statements, and one listens, so a process"
        " needs at most 12 + this. Ten serve a busy process; raise it only with the server's `max_connections` in mind,"
        " since every process of every replica has its own pool. Workers have `WAYBILL_WORKER_DATABASE_POOL_SIZE`.",
    )
    sample_interval: Seconds = Field(
        15.0,
        ge=1,
        description="How often the jobs that wait and run are counted for metrics and for the page `/ops`. One process"
        " counts for all: more replicas cost no more.",
    )
    database_pgbouncer: bool = Field(
        False,
        description="Set this if `WAYBILL_DATABASE_URL` points to PgBouncer in transaction mode. Prepared"
        " statements are then not cached, and workers find jobs by polling alone, because LISTEN"
        " cannot work there.",
    )
    database_connect_timeout: Annotated[Seconds, Bare("DATABASE_TIMEOUT")] = Field(
        60.0,
        description="How long start-up keeps trying to reach Postgres before it gives up. A minute is enough for a"
        " server that starts together with Waybill.",
    )
    storage_url: Annotated[StorageUrl, NoDecode, Bare("STORAGE_BASE_PATH")] = Field(
        default_factory=lambda data: StorageUrl.parse(data["home"] / "storage"),
        json_schema_extra={"default": "`storage` in `WAYBILL_HOME`"},
        examples=["s3://waybill/prod?region=eu-central-1"],
        description="Where documents and results are kept. It is a folder or a bucket (`s3://bucket/prefix`, with"
        " `?endpoint=…&region=…` for what is not Amazon's, `gs://bucket`, `az://container?account=…`)."
        " All services must use the same one. Never put credentials into it.",
    )
    storage_key_id: str | None = Field(
        None,
        description="The id of the access key for `s3://`, or the account's name for `az://`. If it is not set, the"
        " cloud's own variables (`AWS_ACCESS_KEY_ID`, …) or the identity of the pod or machine are used.",
    )
    storage_secret: SecretStr | None = Field(
        None,
        description="The secret that belongs to `WAYBILL_STORAGE_KEY_ID`. It is the secret access key (`s3://`), the"
        " account's key (`az://`) or a service account's key as JSON (`gs://`), and never logged.",
    )
    storage_old_url: Annotated[StorageUrl | None, NoDecode] = Field(
        None,
        examples=["/srv/waybill"],
        description="The place that the storage is moving away from. What is not found in `WAYBILL_STORAGE_URL` is"
        " looked for here, and what is removed goes from both. Set it while services are switched to a new place, and"
        " remove it when everything has been copied.",
    )
    storage_old_key_id: str | None = Field(
        None, description="Like `WAYBILL_STORAGE_KEY_ID`, if the old place needs another one."
    )
    storage_old_secret: SecretStr | None = Field(
        None, description="Like `WAYBILL_STORAGE_SECRET`, if the old place needs another one."
    )
    storage_timeout: Seconds = Field(
        30.0,
        gt=0,
        description="How long an object store may send nothing within a request before the request is repeated or"
        " fails.",
    )
    storage_min_free_mb: int = Field(
        512,
        ge=0,
        description="How many megabytes must be free on the disk of a local storage for uploads to be accepted. The"
        " rest is reserved for results. With 0, uploads are accepted until the disk is full.",
    )
    audit_secret: SecretStr | None = Field(
        None,
        min_length=32,
        description="The secret that signs the checkpoints of the audit trail: at least 32 random characters, the same"
        " for all services and for `waybill audit verify`. If it is not set, the first process generates one and stores"
        " it in the database, where whoever could tamper with the trail can read it, too.",
    )

    @field_validator("storage_secret")
    @classmethod
    def _secret_of_a_key(cls, secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        place: Any = info.data.get("storage_url")
        if place is not None and place.scheme == "s3" and (secret is None) != (info.data.get("storage_key_id") is None):
            raise PydanticCustomError("relation", "must be set together with WAYBILL_STORAGE_KEY_ID, or neither")
        return secret


class ApiSettings(CommonSettings):
    """Settings of the HTTP API and the web pages."""

    title: ClassVar[str] = "API"

    api_host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="The address the API listens on. It is loopback by default, so that nothing is exposed by"
        " accident; a container sets `0.0.0.0`.",
    )
    api_port: Port = Field(8080, description="The port of the API and the pages.")
    api_metrics_port: PortOrNone = Field(
        9080,
        description="The port of the API's metrics, which are never served on its public port. With 0 they are not"
        " served at all. If it is taken, the API says so and works without.",
    )
    api_body_timeout: Seconds = Field(
        20.0,
        gt=0,
        description="How long a client may take to send a request's body, plus one second for every 2 KB of it. Slower"
        " clients get a 408.",
    )
    api_database_timeout: Seconds = Field(
        10.0,
        gt=0,
        description="How long a request waits for Postgres before it is answered with a 503.",
    )
    api_streams_per_owner: int = Field(
        10, ge=1, le=1000, description="How many live streams (`/api/stream`) one owner may have open per replica."
    )
    api_streams_per_address: int = Field(
        100,
        ge=0,
        le=100_000,
        description="How many live streams all browsers of one network address that did not sign in may have open per"
        " replica, because anybody can start sessions. 0 switches this limit off.",
    )
    api_reads_per_minute: int = Field(
        1200,
        ge=0,
        le=10_000_000,
        description="How many requests a browser session may make in a minute, per replica. A review page, a check of"
        " corrections or a picture of a page counts as five. 0 switches this limit off.",
    )
    api_address_reads_per_minute: int = Field(
        6000,
        ge=0,
        le=10_000_000,
        description="The same for all browsers of one network address that did not sign in. A /64 of IPv6 is one"
        " address. Behind a proxy, set `WAYBILL_API_TRUSTED_PROXIES` too, or everybody has the proxy's address.",
    )
    api_key_reads_per_minute: int = Field(
        60_000,
        ge=0,
        le=10_000_000,
        description="The same for all API keys and signed-in browsers of a tenant.",
    )
    api_session_secret: SecretStr | None = Field(
        None,
        min_length=32,
        description="The secret that signs session cookies: at least 32 random characters. If it is not set, the first"
        " process generates one and stores it in the database for all replicas. Changing it signs every browser out,"
        " and browsers lose access to what they uploaded without signing in.",
    )
    api_session_lifetime: Days = Field(
        30.0, gt=0, le=3650, description="How many days a browser keeps its session after its last visit."
    )
    api_https: bool = Field(
        False,
        description="Set this if browsers use HTTPS. Cookies are then marked `Secure`, and browsers are told to insist"
        " on HTTPS. Requests that a trusted proxy received by HTTPS get such cookies anyway.",
    )
    api_hosts: CommaList = Field(
        [],
        description="The host names this server answers to (`waybill.example.com`, `*.example.com`). Empty means any."
        " Probes use the pod's address, so `/livez` and `/readyz` are answered under every name.",
    )
    api_trusted_proxies: CommaList = Field(
        [],
        description="Addresses or networks (`10.0.0.0/8`) of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto`"
        " are trusted. Empty means none.",
    )
    api_cors_origins: CommaList = Field(
        [],
        description="Origins of other sites (`https://erp.example.com`) whose pages may call the API with an API key."
        " Empty means none. Cookies are never accepted from them.",
    )


def cpus() -> int:
    """How many processors this process may use."""
    # A pinned container may use fewer than the machine has, and only some systems report that.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
