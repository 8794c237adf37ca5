"""What can be wrong with a document or with a mapping, for the person who sent it or wrote it.

A document at fault carries findings: each one says what is wrong, where on the page, and in which line. Every sentence
is a `DocumentMessage`, so that a page can show it in the reader's language.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from waybill_documents.messages import DocumentMessage

if TYPE_CHECKING:
    from waybill_documents.geometry import Place


class FaultCode(StrEnum):
    """Why a document could not be converted. Part of the gateway's contract: `docs/gateway.md` lists them."""

    UNREADABLE = "unreadable"
    ENCRYPTED = "encrypted"
    NO_TEXT = "no_text"
    NO_SUCH_PAGE = "no_such_page"
    NO_SUCH_ATTACHMENT = "no_such_attachment"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MUCH_TEXT = "too_much_text"
    TOO_MANY_ROWS = "too_many_rows"
    TOO_MANY_FILES = "too_many_files"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    UNSAFE_NAME = "unsafe_name"
    NOT_RECOGNISED = "not_recognised"
    TABLE_MISSING = "table_missing"
    FIELD_MISSING = "field_missing"
    BAD_VALUE = "bad_value"
    UNREAD_LINE = "unread_line"
    UNKNOWN_LOOKUP = "unknown_lookup"
    CHECK_FAILED = "check_failed"
    NO_EMBEDDED_INVOICE = "no_embedded_invoice"
    UNSUPPORTED_CONSTRUCT = "unsupported_construct"
    INVALID_XML = "invalid_xml"
    PRINTED_DIFFERS = "printed_differs"
    NOT_PRINTED = "not_printed"
    TOOK_TOO_LONG = "took_too_long"
    TOO_MUCH_MEMORY = "too_much_memory"
    PARSER_CRASHED = "parser_crashed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, for a clerk: a message, and where to look."""

    code: FaultCode
    says: DocumentMessage
    path: str | None = None
    """The value it is about, as in `lines[213].amount`; counted from 0 as in JSON."""
    rule: str | None = None
    """The part of the mapping that found it, as in `checks.line_totals`."""
    page: int | None = None
    box: tuple[float, float, float, float] | None = None
    cell: str | None = None
    """The cells it is about, as in `Sheet1!C7`; its page is then the sheet's number."""

    @classmethod
    def at(
        cls,
        place: Place | None,
        code: FaultCode,
        says: DocumentMessage,
        path: str | None = None,
        rule: str | None = None,
    ) -> Finding:
        """A finding that points to a place, if there is one."""
        if place is None:
            return cls(code, says, path, rule)
        return cls(code, says, path, rule, place.page, place.box, place.cell)

    @property
    def message(self) -> str:
        """The sentence in English. `messages.tell` has the other languages."""
        return self.says.english

    @property
    def key(self) -> str | None:
        """The message's key in the catalogues; None for a finding that release 0.1.0 stored."""
        return self.says.key

    @property
    def params(self) -> dict[str, Any]:
        """The message's parameters."""
        return self.says.params

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON, without the members it has no value for."""
        found = {
            "code": self.code.value,
            "message": self.message,
            "key": self.key,
            "path": self.path,
            "rule": self.rule,
            "page": self.page if self.cell is None else None,
            "box": list(self.box) if self.box and self.cell is None else None,
            "sheet": self.page if self.cell is not None else None,
            "cell": self.cell,
            "params": self.params or None,
        }
        return {name: value for name, value in found.items() if value is not None}


class DocumentRejected(Exception):
    """The document is at fault: another attempt with the same file would end the same way."""

    def __init__(
        self,
        code: FaultCode,
        says: DocumentMessage,
        findings: tuple[Finding, ...] = (),
        *,
        partial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(says.english)
        self.code = code
        self.says = says
        self.findings = findings or (Finding(code, says),)
        self.partial = partial
        """What was read in spite of the fault, for a person to look at: data, provenance, checks."""
        self.stages: dict[str, float] = {}
        """Milliseconds of the stages that ran until then."""
        self.extents: dict[str, tuple[float, float]] = {}
        """When they ran; see `Stages`."""

    @property
    def message(self) -> str:
        """The sentence in English."""
        return self.says.english


class MappingFault(Exception):
    """The mapping itself is wrong: it does not fit the schema, or uses a name that it does not define."""

    def __init__(self, says: DocumentMessage, where: str | None = None, *, more: tuple[MappingFault, ...] = ()) -> None:
        super().__init__(f"{where}: {says.english}" if where else says.english)
        self.says = says
        self.where = where
        self.more = more
        """Further mistakes that were found at the same time."""

    @property
    def message(self) -> str:
        """The sentence in English, without the place."""
        return self.says.english
