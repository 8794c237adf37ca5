"""A file of a batch as a row of its table. Every word is chosen here; the template only arranges them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from waybill.errors import Code
from waybill.web.languages import Language
from waybill_batches.pages.durations import duration
from waybill_batches.pages.fault_words import fault_words
from waybill_batches.status import FileStatus
from waybill_batches.views import BatchFault, FileView

AUTO = "auto"
"""The mapping that leaves the choice to the document."""


@dataclass(frozen=True, slots=True)
class FileRow:
    doc_id: str
    folder: str
    """With its slash; empty at the top."""
    name: str
    look: str
    """The CSS class: one of the API's states."""
    icon: str
    word: str
    type: str
    size: str
    mapping: str
    took: str
    tries: str
    """How often it was tried again; empty if never."""
    reused: bool
    said: str
    """Why it has no result; empty if it has one, or may still get one."""
    href: str
    check: str = ""
    """Where to look at a result that is in doubt."""
    review: str = ""
    json: str = ""
    xml: str = ""

    @property
    def path(self) -> str:
        return self.folder + self.name


def file_row(batch_id: uuid.UUID, file: FileView, language: Language) -> FileRow:
    status = file.status
    done = status is FileStatus.COMPLETE
    href = f"/batches/{batch_id}/files/{file.doc_id}"
    result = f"/api{href}/result"
    folder, slash, name = file.path.rpartition("/")
    return FileRow(
        doc_id=file.doc_id,
        folder=folder + slash,
        name=name or file.path,
        look=status.value,
        icon="doubt" if status is FileStatus.NEEDS_REVIEW else status.value,
        word=language.say(f"batches.file_states.{status}"),
        type=type_word(file.type, language),
        size=language.size(file.bytes),
        mapping=mapping_word(file.mapping, language),
        took="" if file.milliseconds is None or file.reused else duration(file.milliseconds, language),
        tries=language.say("batches.row.retried", count=file.retry_count) if file.retry_count else "",
        reused=file.reused and done,
        said=_said(file, language),
        href=href,
        check=file.review or "" if status is FileStatus.NEEDS_REVIEW else "",
        review=file.review or "" if status in (FileStatus.COMPLETE, FileStatus.FAILED) else "",
        json=result if done and file.result_bytes is not None else "",
        xml=f"{result}?format=xml" if done and file.xml_key is not None else "",
    )


def type_word(kind: str, language: Language) -> str:
    """What people call files of a type. A newer release may know more types."""
    key = f"batches.types.{kind}"
    return language.say(key) if key in language.messages else kind


def mapping_word(mapping: str | None, language: Language) -> str:
    return language.say("batches.row.auto") if mapping == AUTO else mapping or ""


def _said(file: FileView, language: Language) -> str:
    if file.status is FileStatus.FAILED:
        return fault_words(file.error or BatchFault(Code.UNKNOWN, "", None, {}), language)
    if file.status is FileStatus.EXPIRED:
        return language.say("batches.result_gone")
    return language.say("batches.result_cancelled") if file.status is FileStatus.CANCELLED else ""
