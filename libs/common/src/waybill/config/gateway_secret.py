"""The secret that the gateway shares with the services that call it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from waybill.config.settings import ProcessSettings
from waybill.config.values import LocalPath

FILE_NAME = "gateway.secret"
_SHORTEST = 32


class GatewaySecretSettings(ProcessSettings):
    """The gateway, and everybody who calls it: API and workers. Without a secret, the gateway does not start."""

    title: ClassVar[str] = "The gateway's secret"

    gateway_secret: SecretStr | None = Field(
        None,
        description="The secret that the gateway shares with the API and the workers: at least 32 random characters,"
        " the same for all of them. It is never sent; both ends prove that they know it. Several are separated by"
        " commas: the gateway accepts each of them, the others use the first. That is how a secret is replaced without"
        " a pause.",
    )
    gateway_secret_file: LocalPath | None = Field(
        None,
        json_schema_extra={"default": f"`{FILE_NAME}` in `WAYBILL_HOME`, if there is one"},
        description="A file with that secret, instead of `WAYBILL_GATEWAY_SECRET`. It is read at the start. `waybill"
        " up` makes one that only its owner can read.",
    )

    @field_validator("gateway_secret")
    @classmethod
    def _long_enough(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None:
            _split(given.get_secret_value())
        return given

    @field_validator("gateway_secret_file")
    @classmethod
    def _found(cls, given: Path | None, info: ValidationInfo) -> Path | None:
        home: Path | None = info.data.get("home")
        if given is None and home is not None and (home / FILE_NAME).exists():
            given = home / FILE_NAME
        if given is not None and info.data.get("gateway_secret") is None:
            _read(given)
        return given

    @property
    def gateway_secrets(self) -> tuple[bytes, ...]:
        """All that are accepted; the first is the one to use. Empty if there is none."""
        if self.gateway_secret is not None:
            return _split(self.gateway_secret.get_secret_value())
        return _read(self.gateway_secret_file) if self.gateway_secret_file is not None else ()


def _read(file: Path) -> tuple[bytes, ...]:
    try:
        return _split(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise PydanticCustomError("waybill", "cannot be read ({reason})", {"reason": reason}) from error


def _split(text: str) -> tuple[bytes, ...]:
    found = tuple(each.strip().encode() for each in text.split(",") if each.strip())
    if not found or any(len(each) < _SHORTEST for each in found):
        raise PydanticCustomError(
            "waybill", "must be at least {shortest} characters long (openssl rand -hex 32)", {"shortest": _SHORTEST}
        )
    return found
