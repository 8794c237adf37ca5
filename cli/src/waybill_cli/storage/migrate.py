"""`waybill storage migrate FROM TO`: a copy of everything, while the system runs."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from pydantic import SecretStr
from pydantic_core import PydanticCustomError
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from waybill.config import CommonSettings
from waybill.config.storage_url import StorageUrl
from waybill.console import human_units
from waybill.console.database import find_settings, with_database
from waybill.console.exits import ExitCode
from waybill.console.options import AsJson
from waybill.console.terminal import complain, print_json, print_line, remark, remarks
from waybill.db import Database
from waybill.errors import Refused
from waybill.storage import open_storage
from waybill.storage.copier import Copied, Copier, counted
from waybill.storage.factory import StorageAccess


def _place(value: str) -> StorageUrl:
    try:
        return StorageUrl.parse(value)
    except (PydanticCustomError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error


From = Annotated[StorageUrl, typer.Argument(parser=_place, metavar="FROM", hidden=True)]
To = Annotated[StorageUrl, typer.Argument(parser=_place, metavar="TO", hidden=True)]


def migrate(
    source: From,
    target: To,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read everything at TO back and compare it, not only what is new.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy everything from one storage to another, verified by hash, while the system runs.

    Interrupted, it goes on where it was when it is called again. What was copied earlier is looked for at TO, and is
    copied again if it is gone or has another size; --verify compares its hash, too. Credentials are the configured
    ones; where TO needs others: WAYBILL_STORAGE_TO_KEY_ID and WAYBILL_STORAGE_TO_SECRET.
    """
    if source == target:
        raise Refused("These are the same place.")
    settings, _ = find_settings()
    here = open_storage(source, _access(settings))
    there = open_storage(target, _access(settings, "WAYBILL_STORAGE_TO_KEY_ID", "WAYBILL_STORAGE_TO_SECRET"))

    async def work(database: Database) -> Copied:
        await here.check()
        await there.check()
        with _progress() as progress:
            bar = progress.add_task("counting", total=None)
            objects, size = await counted(here)
            progress.update(bar, description=f"{objects:,} objects", total=size)
            migration = Copier(database, here, there, str(target), verify=verify)
            return await migration.run(lambda done: progress.update(bar, completed=done.bytes + done.known_bytes))

    done = with_database(work)
    if as_json:
        print_json(
            {
                "objects": done.objects,
                "bytes": done.bytes,
                "known": done.known,
                "lost": done.lost,
                "gone": done.gone,
                "failed": sorted(done.failed),
            }
        )
    else:
        print_line(
            f"{human_units.counted(done.objects, 'object')} copied and verified ({human_units.size(done.bytes)}), "
            f"{done.known:,} were there already (their {'content' if verify else 'size'} compared)."
        )
        if done.lost:
            lost = human_units.counted(done.lost, "earlier copy was", "earlier copies were")
            print_line(f"{lost} missing or different at the target, and copied again.")
    for key, why in list(done.failed.items())[:20]:
        complain(f"{key}: {why}")
    if done.failed:
        remark("Call it again to try these once more.")
        raise typer.Exit(ExitCode.REFUSED)
    if not as_json:
        remark(
            "Now give all services WAYBILL_STORAGE_URL=TO and WAYBILL_STORAGE_OLD_URL=FROM, then call this once more "
            "for what came in meanwhile."
        )


def _access(settings: CommonSettings, key_id: str | None = None, secret: str | None = None) -> StorageAccess:
    given = os.environ.get(secret) if secret else None
    return StorageAccess(
        (os.environ.get(key_id) if key_id else None) or settings.storage_key_id,
        SecretStr(given) if given else settings.storage_secret,
        settings.storage_timeout,
    )


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=remarks(),
        transient=True,
    )
