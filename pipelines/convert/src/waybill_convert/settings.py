"""The convert pipeline's settings: limits of an upload, how to call the gateway, and how long things are kept."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from waybill.config.gateway_client import GatewayClientSettings
from waybill.config.mappings_dir import MappingsDirSettings
from waybill.config.values import Bare, Days, Seconds


class ConvertSettings(GatewayClientSettings, MappingsDirSettings):
    """Settings of the convert pipeline, in the API, the worker and the janitor."""

    title: ClassVar[str] = "Convert"

    max_upload_mb: Annotated[int, Bare("MAX_UPLOAD_MB")] = Field(
        50, ge=1, le=2000, description="The largest document that is accepted, in MB of 1024 x 1024 bytes."
    )
    api_max_request_mb: int = Field(
        200, ge=1, le=10_000, description="The largest request with several documents, in MB."
    )
    api_max_files: int = Field(20, ge=1, le=200, description="How many documents one request may contain.")
    api_upload_timeout: Seconds = Field(
        300.0,
        gt=0,
        description="How long a client may take to send a request. Slower clients get a 408, so that they cannot hold"
        " connections for ever.",
    )
    api_uploads_per_minute: int = Field(
        10,
        ge=1,
        le=100_000,
        description="How many upload requests a browser session may make in a minute, counted across all replicas."
        " A request may contain several documents.",
    )
    api_key_uploads_per_minute: int = Field(
        120,
        ge=1,
        le=100_000,
        description="How many upload requests all API keys of a tenant may make in a minute.",
    )
    api_address_uploads_per_minute: int = Field(
        60,
        ge=0,
        le=100_000,
        description="How many upload requests all sessions of one network address may make in a minute, because anybody"
        " can start sessions. 0 switches this limit off. Offices often share one address. Behind a proxy, set"
        " `WAYBILL_API_TRUSTED_PROXIES` too, or everybody has the proxy's address.",
    )
    default_mapping: str = Field(
        "pt_simon_invoice_v1",
        min_length=1,
        max_length=64,
        description="The mapping for documents that come in through the API without one: a name, or `auto` for the one"
        " that recognises the document. The upload page always begins with `auto`.",
    )
    api_review_processes: int = Field(
        2,
        ge=1,
        le=64,
        description="How many processes an API process has for the review page and for corrections. They are started"
        " when they are needed and run behind everything else. One owner never has all of them, unless there is only"
        " one. Each needs about 50 MB, and up to 250 MB for a document with thousands of lines.",
    )
    convert_retries: Annotated[int, Bare("MAX_RETRY_ATTEMPTS")] = Field(
        3,
        ge=0,
        le=100,
        description="How often a conversion that failed for a temporary reason is retried before it is dead-lettered."
        " It counts for documents that are enqueued from then on, whoever enqueues them, so all services need the same"
        " number.",
    )
    document_wait: Seconds = Field(
        3600.0,
        ge=0,
        description="How long a conversion waits for a document that was accepted and is not in the storage, before it"
        " ends as `EXPIRED`. While the storage moves to another place, it may be in the other one. 0 means not at all.",
    )
    review_below: int = Field(
        0,
        ge=0,
        le=100,
        description="A person has to look at a result before anybody gets it if one of its essential values has a"
        " lower confidence (0-100). 0 means never. A mapping may say its own number (`review_below`), and a tenant may"
        " have its own: `waybill tenant review`. Workers use it. Set it once every service runs this release.",
    )
    pdf_ttl_days: Annotated[Days, Bare("PDF_TTL_DAYS")] = Field(
        7.0,
        le=36500,
        description="How many days a source document is kept after its job ended or it was last uploaded. With 0, the"
        " janitor's next run removes it. A tenant may have its own number: `waybill tenant retention`.",
    )
    xml_ttl_days: Annotated[Days, Bare("XML_TTL_DAYS")] = Field(
        30.0,
        le=36500,
        description="How many days results and their revisions are kept. The job then stays listed as expired.",
    )
    xml_on_download: Annotated[bool, Bare("XML_DELETE_ON_DOWNLOAD")] = Field(
        False,
        description="Whether a result is removed a quarter of an hour after it was downloaded. Until then, an"
        " interrupted download can be repeated.",
    )
    tombstone_ttl_days: Days = Field(
        7.0,
        le=36500,
        description="How many days clients that follow a list (`since`) can still learn that a job was deleted.",
    )
    retired_mapping_ttl_days: Days = Field(
        30.0,
        le=36500,
        description="How many days a retired mapping is kept at least, with its samples. The janitor removes it after"
        " that, once no job names it any more.",
    )
