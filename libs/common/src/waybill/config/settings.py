"""Every setting of every service: its name, type, default and why, in one place.

`loading` reads them from the environment, `reference` turns them into docs/configuration.md.
A field `lease_ttl` is the variable `WAYBILL_LEASE_TTL`; `Bare` names an unprefixed one that also works.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from waybill.config.sources import BareNames
from waybill.config.storage_url import StorageUrl
from waybill.config.values import Bare, CommaList, DatabaseUrl, Days, LocalPath, Port, Seconds

LogFormat = Literal["auto", "console", "json"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
_Lower = BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)


class ProcessSettings(BaseSettings):
    """What every process understands, also one that needs no database."""

    model_config = SettingsConfigDict(
        env_prefix="WAYBILL_",
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,  # charts and compose files set "" where they mean "not set"
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,  # the input may be a secret
        validate_default=True,
    )

    title: ClassVar[str] = "Every process"

    home: LocalPath = Field(
        Path(".waybill"),
        description="The folder for everything Waybill keeps on this machine. As root, the embedded database"
        " may have to live under /var/lib/waybill instead; `waybill up` says where.",
    )
    log_format: Annotated[LogFormat, _Lower, Bare("LOG_FORMAT")] = Field(
        "auto",
        description="`json` writes one JSON object per line, `console` lines a person likes to read; `auto`"
        " is `console` on a terminal and under `waybill up`, and `json` otherwise.",
    )
    log_level: Annotated[LogLevel, _Lower, Bare("LOG_LEVEL")] = Field(
        "info", description="The least serious level that is still written."
    )
    log_file: Annotated[LocalPath | None, Bare("LOG_FILE_PATH")] = Field(
        None,
        description="Also write the log, as JSON lines, to this file. Not set by default: a container's log"
        " belongs on its standard error. Several processes may share the file.",
    )
    log_file_max_bytes: int = Field(
        10_000_000,
        ge=1024,
        description="The size at which the log file is rotated, so that it never fills a disk.",
    )
    log_file_backups: int = Field(
        5, ge=1, le=1000, description="How many rotated log files are kept beside the current one."
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
    """What every service that uses the database understands, and the command line."""

    title: ClassVar[str] = "Every service with a database"

    database_url: Annotated[DatabaseUrl, NoDecode, Bare("DATABASE_URL")] = Field(
        examples=["postgresql://waybill:secret@localhost:5432/waybill"],
        description="Where Postgres is. Required: the one server Waybill cannot do without. `postgres://`"
        " and `postgresql+asyncpg://` mean the same. Its password is never logged.",
    )
    database_pool_size: Annotated[int, Bare("DATABASE_MAX_CONNECTIONS")] = Field(
        10,
        ge=1,
        le=1000,
        description="The most connections one process keeps to Postgres. Ten serve a busy process; raise it"
        " only with the server's `max_connections` in mind, since every process of every replica"
        " has its own pool.",
    )
    database_pgbouncer: bool = Field(
        False,
        description="Set it when `WAYBILL_DATABASE_URL` leads to PgBouncer in transaction mode: prepared"
        " statements are then not cached and workers find jobs by polling alone, because LISTEN"
        " cannot work there.",
    )
    database_connect_timeout: Seconds = Field(
        60.0,
        description="How long start-up keeps trying to reach Postgres before it gives up. A minute covers a"
        " server that starts together with Waybill.",
    )
    storage_url: Annotated[StorageUrl, NoDecode, Bare("STORAGE_BASE_PATH")] = Field(
        default_factory=lambda data: StorageUrl.parse(data["home"] / "storage"),
        json_schema_extra={"default": "`storage` in `WAYBILL_HOME`"},
        examples=["s3://waybill/prod?region=eu-central-1"],
        description="Where documents and results are kept: a folder, or a bucket (`s3://bucket/prefix`, with"
        " `?endpoint=…&region=…` for what is not Amazon's, `gs://bucket`, `az://container?account=…`)."
        " All services must see the same one. Never with credentials in it.",
    )
    storage_key_id: str | None = Field(
        None,
        description="The access key's id for `s3://`, or the account's name for `az://`. Not set: the cloud's own"
        " variables (`AWS_ACCESS_KEY_ID`, …) or the identity of the pod or machine.",
    )
    storage_secret: SecretStr | None = Field(
        None,
        description="What belongs to it: the secret access key (`s3://`), the account's key (`az://`) or a service"
        " account's key as JSON (`gs://`). Never logged.",
    )
    storage_timeout: Seconds = Field(
        30.0,
        gt=0,
        description="How long an object store may stay silent within a request before the request is repeated or"
        " given up.",
    )
    storage_min_free_mb: int = Field(
        512,
        ge=0,
        description="Megabytes that must be free on the disk of a local storage for uploads to be taken in. What is"
        " left is for results. 0 takes in until the disk is full.",
    )

    @field_validator("storage_secret")
    @classmethod
    def _secret_of_a_key(cls, secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        place: Any = info.data.get("storage_url")
        if place is not None and place.scheme == "s3" and (secret is None) != (info.data.get("storage_key_id") is None):
            raise PydanticCustomError("relation", "must be set together with WAYBILL_STORAGE_KEY_ID, or neither")
        return secret


class ApiSettings(CommonSettings):
    """What the HTTP API and the web pages understand."""

    title: ClassVar[str] = "API"

    api_host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="The address the API listens on. Loopback by default, so that nothing is exposed by"
        " accident; a container sets `0.0.0.0`.",
    )
    api_port: Port = Field(8080, description="The port of the API and the pages.")
    max_upload_mb: Annotated[int, Bare("MAX_UPLOAD_MB")] = Field(
        50, ge=1, le=2000, description="The largest document that is taken, in MB of 1024 x 1024 bytes."
    )
    api_max_request_mb: int = Field(
        200, ge=1, le=10_000, description="The largest request with several documents in it, in MB."
    )
    api_max_files: int = Field(20, ge=1, le=200, description="How many documents one request may bring.")
    api_body_timeout: Seconds = Field(
        20.0,
        gt=0,
        description="How long a client may keep us waiting for what a request brings, beside a second for each 2 KB of"
        " it. Slower ones get a 408.",
    )
    api_upload_timeout: Seconds = Field(
        300.0,
        gt=0,
        description="How long a client may take to send a request. Slower ones get a 408, so that they cannot hold"
        " connections for ever.",
    )
    api_uploads_per_minute: int = Field(
        10,
        ge=1,
        le=100_000,
        description="How many upload requests a browser's session may make in a minute, counted across all replicas."
        " A request may bring several documents.",
    )
    api_key_uploads_per_minute: int = Field(
        120, ge=1, le=100_000, description="The same for a tenant, all its API keys together."
    )
    api_address_uploads_per_minute: int = Field(
        60,
        ge=0,
        le=100_000,
        description="The same for all sessions from one network address together, because anybody can start sessions;"
        " 0 counts none. Offices often share one address. Behind a proxy it needs `WAYBILL_API_TRUSTED_PROXIES`, or"
        " everybody has the proxy's address.",
    )
    api_database_timeout: Seconds = Field(
        10.0,
        gt=0,
        description="How long a request waits for Postgres before it is answered with a 503.",
    )
    api_streams_per_owner: int = Field(
        10, ge=1, le=1000, description="How many live streams (`/api/stream`) one owner may have open on one replica."
    )
    api_session_secret: SecretStr | None = Field(
        None,
        min_length=32,
        description="What session cookies are signed with: at least 32 characters of chance. Not set: the first"
        " process makes one and keeps it in the database, for all replicas. Changing it signs every browser out, and"
        " what browsers uploaded without signing in is then nobody's.",
    )
    api_session_lifetime: Days = Field(
        30.0, gt=0, le=3650, description="How many days a browser keeps its session after its last visit."
    )
    api_https: bool = Field(
        False,
        description="Say that browsers come by HTTPS: cookies are then marked `Secure` and browsers told to insist on"
        " HTTPS. Requests that came by HTTPS through a trusted proxy get such cookies anyway.",
    )
    api_hosts: CommaList = Field(
        [],
        description="The host names this server answers to (`waybill.example.com`, `*.example.com`). Empty: any."
        " Probes ask by address, so `/livez` and `/readyz` are answered whatever the name.",
    )
    api_trusted_proxies: CommaList = Field(
        [],
        description="Addresses or networks (`10.0.0.0/8`) of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto`"
        " are believed. Empty: nobody's.",
    )
    api_cors_origins: CommaList = Field(
        [],
        description="Origins of other sites (`https://erp.example.com`) whose pages may call the API with an API key."
        " Empty: none. Cookies are never accepted from them.",
    )
    gateway_url: Annotated[str, Bare("GATEWAY_URL")] = Field(
        "http://127.0.0.1:8081", description="Where the gateway is, which draws the pages of documents under review."
    )
    gateway_mappings_dir: LocalPath | None = Field(
        None,
        description="The gateway's folder with further mappings, where it has one: what was converted by them can be"
        " corrected only if the API sees it, too.",
    )


def _cpus() -> int:
    # A pinned container may use fewer than the machine has; only some systems can say so.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerSettings(CommonSettings):
    """What the worker understands: how much it runs at once, what it serves, and how it holds its leases."""

    title: ClassVar[str] = "Worker"

    worker_concurrency: Annotated[int, Bare("WORKER_CONCURRENCY")] = Field(
        10,
        ge=1,
        le=1000,
        description="How many jobs one worker process runs at once. Ten suits handlers that mostly wait.",
    )
    worker_processes: int = Field(
        1,
        ge=1,
        le=256,
        description="How many worker processes to start. One by default: in a cluster, replicas do this better.",
    )
    worker_queues: CommaList = Field(
        [], description="The queues to serve, separated by commas. Empty: every queue that its kinds use."
    )
    worker_kinds: CommaList = Field(
        [], description="The job kinds to serve, separated by commas. Empty: every kind it has a handler for."
    )
    worker_handlers: CommaList = Field(
        ["waybill_convert.handlers", "waybill_engine.selftest"],
        min_length=1,
        description="The Python modules that register handlers, separated by commas; imported at start-up.",
    )
    worker_pool_size: int = Field(
        default_factory=_cpus,
        ge=1,
        le=1024,
        json_schema_extra={"default": "number of CPUs"},
        description="How many processes run blocking or CPU-heavy work, so that the loop that renews leases"
        " never stalls.",
    )
    worker_pod_namespace: Annotated[str | None, Bare("POD_NAMESPACE")] = Field(
        None, description="The namespace of the pod this worker runs in, from the downward API."
    )
    worker_pod_name: Annotated[str | None, Bare("POD_NAME")] = Field(
        None,
        description="The name of that pod. A lease that knows its pod can be released when the pod is gone.",
    )
    worker_pod_uid: Annotated[str | None, Bare("POD_UID")] = Field(
        None, description="The uid of that pod, which tells it from a later pod of the same name."
    )
    gateway_url: Annotated[str, Bare("GATEWAY_URL")] = Field(
        "http://127.0.0.1:8081", description="Where the gateway is, which turns documents into XML."
    )
    gateway_timeout: Seconds = Field(
        180.0,
        gt=0,
        description="How long one call to the gateway may take before it counts as failed and is tried again.",
    )
    gateway_calls: int = Field(
        32,
        ge=0,
        le=100_000,
        description="How many documents may be at the gateway at once, in the whole cluster, of each kind of job that"
        " calls it: a cap that workers put in force when they start, unless `waybill caps` was ever used for the kind."
        " 32 keep ten processors parsing and two documents waiting for each; raise it with the gateway. 0: no cap.",
    )
    lease_ttl: Seconds = Field(
        60.0,
        ge=0.5,
        description="How long a claim holds without being renewed. After a crash, a job waits this long for"
        " its next worker; a worker cut off for longer loses its jobs.",
    )
    heartbeat_interval: Seconds = Field(
        20.0,
        gt=0,
        description="How often a worker renews its leases. At most half of `WAYBILL_LEASE_TTL`, so that one"
        " lost heartbeat loses no lease.",
    )
    poll_interval: Seconds = Field(
        5.0,
        gt=0,
        description="How often an idle worker looks for jobs on its own. Notifications wake it sooner; this"
        " is the safety net, and the only way behind PgBouncer.",
    )
    shutdown_grace: Seconds = Field(
        30.0,
        description="How long running jobs may go on after SIGTERM before they are released to other"
        " workers. Keep it below the pod's `terminationGracePeriodSeconds`.",
    )
    rescue_interval: Seconds = Field(
        10.0,
        gt=0,
        description="How often a worker looks for expired leases of others and returns their jobs.",
    )
    breaker_window: Seconds = Field(
        300.0,
        ge=1,
        description="How far back a dependency's circuit breaker looks. Five minutes: long enough to tell an"
        " outage from bad luck, short enough to forget yesterday's.",
    )
    breaker_failure_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="The share of calls within the window that must have failed for the breaker to open.",
    )
    breaker_min_calls: int = Field(
        10,
        ge=1,
        le=1_000_000,
        description="How many calls there must be within the window before that share means anything.",
    )
    breaker_open: Seconds = Field(
        30.0,
        gt=0,
        description="How long a breaker stays open before the first probes. Doubles each time a probe fails.",
    )
    breaker_open_max: Seconds = Field(
        300.0,
        gt=0,
        description="The longest it stays open between probes: how late the end of an outage may be noticed."
        " At least `WAYBILL_BREAKER_OPEN`.",
    )
    breaker_probes: int = Field(
        2,
        ge=1,
        le=1000,
        description="How many jobs of the whole fleet may try a dependency at once while its breaker is half"
        " open, and how many must succeed to close it.",
    )

    # Relations between fields are checked on the later one, not in a model validator: that would run only
    # when every field is valid, and a person would meet the problems one start at a time.
    @field_validator("heartbeat_interval")
    @classmethod
    def _renews_in_time(cls, heartbeat: float, info: ValidationInfo) -> float:
        ttl: Any = info.data.get("lease_ttl")
        if ttl is not None and heartbeat > ttl / 2:
            raise PydanticCustomError(
                "relation", "must be at most half of WAYBILL_LEASE_TTL ({half} s)", {"half": f"{ttl / 2:g}"}
            )
        return heartbeat

    @field_validator("breaker_open_max")
    @classmethod
    def _opens_no_shorter(cls, longest: float, info: ValidationInfo) -> float:
        first: Any = info.data.get("breaker_open")
        if first is not None and longest < first:
            raise PydanticCustomError(
                "relation", "must be at least WAYBILL_BREAKER_OPEN ({first} s)", {"first": f"{first:g}"}
            )
        return longest


class GatewaySettings(ProcessSettings):
    """What the gateway understands. It needs no database."""

    title: ClassVar[str] = "Gateway"

    gateway_host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="The address the gateway listens on. Loopback by default: it asks nobody who they are, so only"
        " our own services should reach it.",
    )
    gateway_port: Port = Field(8081, description="The port of the gateway.")
    max_upload_mb: Annotated[int, Bare("MAX_UPLOAD_MB")] = Field(
        50, ge=1, le=2000, description="The largest document that is taken, in MB of 1024 x 1024 bytes."
    )
    gateway_upload_timeout: Seconds = Field(
        60.0,
        gt=0,
        description="How long a client may take to send a document. Slower ones get a 408, so that they cannot"
        " hold the places of others.",
    )
    gateway_processes: int = Field(
        default_factory=_cpus,
        ge=1,
        le=256,
        json_schema_extra={"default": "number of CPUs"},
        description="How many processes parse documents, one document at a time each.",
    )
    gateway_queue: int = Field(
        default_factory=lambda data: 2 * data["gateway_processes"],
        ge=0,
        le=10_000,
        json_schema_extra={"default": "2 x `WAYBILL_GATEWAY_PROCESSES`"},
        description="How many more requests are taken while all processes are busy. The next one gets a 503 with"
        " `Retry-After` at once.",
    )
    gateway_queue_timeout: Seconds = Field(
        30.0,
        gt=0,
        description="How long a taken request may wait for a process before it, too, gets a 503. Together with the"
        " limits on sending and parsing it leaves some of the 180 s that our worker waits.",
    )
    gateway_parse_timeout: Seconds = Field(
        60.0,
        gt=0,
        description="How long one document may be parsed, by the clock on the wall and in time of the processor."
        " The process is killed then and the document gets a 422.",
    )
    gateway_memory_mb: int = Field(
        1024,
        ge=128,
        le=65_536,
        description="The memory one parsing process may use, in MB. A document that needs more gets a 422. A pod needs"
        " this times `WAYBILL_GATEWAY_PROCESSES` in the worst case.",
    )
    gateway_max_result_mb: int = Field(
        256, ge=1, le=10_000, description="The largest answer one document may have, in MB. More is a 422."
    )
    gateway_documents_per_process: int = Field(
        200,
        ge=1,
        le=100_000,
        description="After how many documents a process is replaced, so that what leaks in a parser stays small.",
    )
    gateway_mappings_dir: LocalPath | None = Field(
        None,
        description="A folder with further mappings, `NAME.json`, beside the ones that are shipped. Read when the"
        " gateway starts; a mapping that is wrong stops the start.",
    )
    gateway_spool_dir: LocalPath = Field(
        default_factory=lambda data: data["home"] / "gateway",
        json_schema_extra={"default": "`gateway` in `WAYBILL_HOME`"},
        description="The folder for documents while they are being converted. Emptied when a request ends, and what"
        " a killed gateway left there goes when the next one starts.",
    )
    gateway_shutdown_grace: Seconds = Field(
        25.0,
        description="How long running requests may go on after SIGTERM. Keep it below the pod's"
        " `terminationGracePeriodSeconds`.",
    )


class JanitorSettings(CommonSettings):
    """What the janitor understands: how long things are kept, and how long it may take."""

    title: ClassVar[str] = "Janitor"

    pdf_ttl_days: Annotated[Days, Bare("PDF_TTL_DAYS")] = Field(
        7.0,
        le=36500,
        description="How many days a source document is kept after its job has ended or it was last uploaded again."
        " 0: until the next run. A tenant may have its own: `waybill tenant retention`.",
    )
    xml_ttl_days: Annotated[Days, Bare("XML_TTL_DAYS")] = Field(
        30.0,
        le=36500,
        description="The same for results and their revisions. The job stays listed as expired.",
    )
    xml_on_download: Annotated[bool, Bare("XML_DELETE_ON_DOWNLOAD")] = Field(
        False,
        description="Remove a result once it was downloaded, a quarter of an hour later: a download that broke off can"
        " be repeated.",
    )
    events_ttl_days: Annotated[Days, Bare("EVENTS_TTL_DAYS")] = Field(
        90.0, le=36500, description="How many days the history of ended jobs, breakers and the janitor is kept."
    )
    jobs_ttl_days: Annotated[Days, Bare("JOBS_TTL_DAYS")] = Field(
        90.0,
        le=36500,
        description="How many days an ended job stays listed. It goes when nothing of it is kept any more.",
    )
    tombstone_ttl_days: Days = Field(
        7.0,
        le=36500,
        description="How many days those who follow a list (`since`) can learn that a job was deleted.",
    )
    worker_ttl_days: Days = Field(
        7.0, le=36500, description="How many days a worker that stopped or went missing stays in the list of workers."
    )
    orphan_grace: Seconds = Field(
        86400.0,
        ge=0,
        description="How old a stored object must be to be removed when no row names it. Longer than any upload or job"
        " takes: an object is stored before the row that names it.",
    )
    dead_letter_alarm: Seconds = Field(
        86400.0,
        gt=0,
        description="The age at which a job in the dead-letter queue is reported: somebody should have looked.",
    )
    janitor_interval: Seconds = Field(
        900.0, gt=0, description="How often `waybill up` has it run. In a cluster the CronJob's schedule says so."
    )
    janitor_scan_interval: Seconds = Field(
        86400.0,
        description="How often it compares all of the storage with all rows, both ways. Object stores charge for it.",
    )
    janitor_time_limit: Seconds = Field(
        1800.0, gt=0, description="How long one run may take. What is left is the next run's."
    )
    janitor_task_time_limit: Seconds = Field(
        300.0, gt=0, description="How long one of its tasks may take, so that none keeps the others waiting."
    )


SETTINGS: tuple[type[ProcessSettings], ...] = (
    ProcessSettings,
    CommonSettings,
    ApiSettings,
    WorkerSettings,
    GatewaySettings,
    JanitorSettings,
)
"""Every settings class: the reference lists them, and no service takes another's variable for a slip."""
