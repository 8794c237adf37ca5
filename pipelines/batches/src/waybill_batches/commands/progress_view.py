"""The progress bar of `waybill batch submit`: first the upload, then the files that are done."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn

from waybill.console.terminal import remarks, safe, styled
from waybill.console.upload_request import UploadFile
from waybill_batches.commands.outcome import counts_text


class Bar:
    """It is only shown on a terminal."""

    def __init__(self, archive: UploadFile, *, hidden: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[said]}", markup=False),
            console=remarks(),
            transient=True,
            disable=hidden or not remarks().is_terminal,
        )
        self._task = self._progress.add_task(safe(archive.path.name)[:40], total=archive.bytes or 1, said="Uploading")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def sent(self, count: int) -> None:
        """Advance the upload; a negative count takes it back, because the ZIP is sent again."""
        self._progress.update(self._task, advance=count)

    def show(self, batch: dict[str, Any]) -> None:
        said = counts_text(batch) if batch["counts"]["files"] else "Unpacking"
        self._progress.update(self._task, total=1.0, completed=batch["progress"], said=safe(said))

    def remark(self, text: str) -> None:
        self._progress.console.print(styled(text, "dim"), soft_wrap=True)
