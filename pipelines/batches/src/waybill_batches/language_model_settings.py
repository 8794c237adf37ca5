"""How a language model is asked, for batches that name fields for it to fill. Off by default: nothing is sent."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from waybill.config.settings import ProcessSettings
from waybill.config.values import Seconds


class LanguageModelSettings(ProcessSettings):
    """The language model that fills fields in the files of a batch: docs/language-model.md."""

    title: ClassVar[str] = "The language model"

    llm_url: str | None = Field(
        None,
        description="The base URL of an OpenAI-compatible endpoint, such as `http://127.0.0.1:11434/v1`. Extracted text"
        " is sent to `{url}/chat/completions`. Without it, no batch can ask for fields and nothing is sent. API and"
        " workers need the same.",
    )
    llm_key: SecretStr | None = Field(
        None,
        description="The API key of that endpoint, sent as a bearer token. Only workers need it. It is never logged.",
    )
    llm_model: str = Field(
        "",
        max_length=200,
        description="The model's name at that endpoint. Needed with `WAYBILL_LLM_URL`. Results say which model made"
        " them, and another model's are not used again.",
    )
    llm_timeout: Seconds = Field(
        120.0,
        gt=0,
        le=3600,
        description="How long one question to the model may take, from connecting to the end of its answer. A file"
        " takes one question, and another one if the answer did not fit.",
    )
    llm_max_input: int = Field(
        60_000,
        ge=500,
        le=4_000_000,
        description="How many characters of a file's text are sent at most. Longer texts are cut, and their results say"
        " so. Four characters are about one token.",
    )
    llm_max_output: int = Field(
        2_000, ge=16, le=200_000, description="How many tokens the model may answer with. A longer answer is an error."
    )
    llm_price_in: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="What a million tokens of input cost, in any currency. With both prices set, results say what they"
        " cost.",
    )
    llm_price_out: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="What a million tokens of output cost, in the same currency."
    )
    llm_tokens_per_minute: int = Field(
        0,
        ge=0,
        le=1_000_000_000,
        description="How many tokens one tenant may use in a minute, counted across all workers. Files wait for their"
        " turn, which costs them no attempt. 0 means no limit.",
    )
    llm_calls: int = Field(
        8,
        ge=0,
        le=100_000,
        description="How many files may be at the language model at once, in the whole cluster. Workers set this cap"
        " when they start, unless `waybill caps` was ever used for `enrich_file`. 0 means no cap.",
    )

    @field_validator("llm_url")
    @classmethod
    def _is_base_url(cls, given: str | None) -> str | None:
        if given is None:
            return None
        url = given.strip().rstrip("/")
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.query or parts.fragment or any(character.isspace() for character in url):
            raise PydanticCustomError("waybill", "must look like https://host/v1")
        if parts.username is not None or parts.password is not None:
            raise PydanticCustomError("waybill", "has a name or password in it; use WAYBILL_LLM_KEY")
        return url.removesuffix("/chat/completions")

    @field_validator("llm_key")
    @classmethod
    def _can_be_sent(cls, given: SecretStr | None) -> SecretStr | None:
        if given is None:
            return None
        key = given.get_secret_value().strip()
        if not (key and key.isascii() and key.isprintable() and " " not in key):
            raise PydanticCustomError("waybill", "has characters that no API key can have")
        return SecretStr(key)

    @field_validator("llm_model")
    @classmethod
    def _is_named(cls, given: str, info: ValidationInfo) -> str:
        if info.data.get("llm_url") is not None and not given.strip():
            raise PydanticCustomError("waybill", "is needed with WAYBILL_LLM_URL")
        return given.strip()
