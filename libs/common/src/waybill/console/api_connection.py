"""How commands reach the API: the options for its URL and key, and what a refusal means for the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from waybill.console.api_client import ApiAway, ApiClient, ApiFailed
from waybill.console.exits import ExitCode
from waybill.console.terminal import complain

DEFAULT_URL = "http://127.0.0.1:8080"

Url = Annotated[str, typer.Option("--url", envvar="WAYBILL_API_URL", metavar="URL", help="The URL of Waybill's API.")]
Key = Annotated[
    str, typer.Option("--key", envvar="WAYBILL_API_KEY", metavar="KEY", help="An API key.", show_default=False)
]


def need_key(command: str, key: str) -> None:
    """End the command if there is no key."""
    if not key:
        complain(f"{command} needs an API key. Set WAYBILL_API_KEY; `waybill apikey create` creates one.")
        raise typer.Exit(ExitCode.USAGE)


@contextmanager
def connected(command: str, url: str, key: str) -> Iterator[ApiClient]:
    """A connection to the API. The command ends with what the API says, if it refuses something."""
    need_key(command, key)
    try:
        with ApiClient(url, key) as api:
            yield api
    except ApiFailed as error:
        complain(error.message)
        for each in error.problem.get("faults", [])[1:]:
            complain(str(each.get("message")))
        raise typer.Exit(ExitCode.UNREACHABLE if isinstance(error, ApiAway) else ExitCode.REFUSED) from error
