"""What can be wrong with a document or with a mapping, in words for the person who sent it.

A document at fault carries findings: each one says what is wrong, where on the page, and in which line. They are
data, so that a page can jump to them and say them in the reader's language.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waybill_documents.words import Place


class FaultCode(StrEnum):
    """Why a document could not be converted. Part of the gateway's contract: `docs/gateway.md` lists them."""

    UNREADABLE = "unreadable"
    ENCRYPTED = "encrypted"
    NO_TEXT = "no_text"
    NO_SUCH_PAGE = "no_such_page"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MUCH_TEXT = "too_much_text"
    TOO_MANY_ROWS = "too_many_rows"
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
    TOOK_TOO_LONG = "took_too_long"
    TOO_MUCH_MEMORY = "too_much_memory"
    PARSER_CRASHED = "parser_crashed"


NO_TEXT = "The PDF holds pictures of pages and no text, as scanners make them. Ask the sender for the original PDF."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, for a clerk: a sentence, and where to look."""

    code: FaultCode
    message: str
    path: str | None = None
    """The value it is about, as in `lines[213].amount`; counted from 0 as in JSON."""
    rule: str | None = None
    """The part of the mapping that found it, as in `checks.line_totals`."""
    page: int | None = None
    box: tuple[float, float, float, float] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    """What the sentence was made from, so that it can be said in another language."""

    @classmethod
    def at(
        cls, place: Place | None, code: FaultCode, message: str, path: str, rule: str, params: dict[str, Any]
    ) -> Finding:
        """One that is about a place, if there is one."""
        return cls(code, message, path, rule, place.page if place else None, place.box if place else None, params)

    def to_json(self) -> dict[str, Any]:
        """The finding without what it does not have."""
        found = {
            "code": self.code.value,
            "message": self.message,
            "path": self.path,
            "rule": self.rule,
            "page": self.page,
            "box": list(self.box) if self.box else None,
            "params": self.params or None,
        }
        return {name: value for name, value in found.items() if value is not None}


class DocumentFault(Exception):
    """The document is at fault: another attempt with the same file would end the same way."""

    def __init__(
        self,
        code: FaultCode,
        message: str,
        findings: tuple[Finding, ...] = (),
        *,
        partial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.findings = findings or (Finding(code, message),)
        self.partial = partial
        """What was found all the same, for a person to look at: data, provenance, checks."""
        self.stages: dict[str, float] = {}
        """Milliseconds of the stages that ran until then."""


class MappingFault(Exception):
    """The mapping itself is wrong: it does not fit the schema, or names what it does not have."""

    def __init__(self, message: str, where: str | None = None, *, more: tuple[MappingFault, ...] = ()) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where
        self.more = more
        """Further mistakes that were found in the same go."""
