"""The one error taxonomy: what can go wrong, what it means to a person, and whether a retry can help.

Everything that fails in Waybill ends as one of these codes. Services raise the exceptions below;
`waybill.failures.classify` turns any other exception into one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from waybill.messages import Message


class Code(StrEnum):
    NOT_PDF = "NOT_PDF"
    TOO_LARGE = "TOO_LARGE"
    BAD_MAPPING = "BAD_MAPPING"
    GW_4XX = "GW_4XX"
    GW_5XX = "GW_5XX"
    GW_TIMEOUT = "GW_TIMEOUT"
    IO_ERROR = "IO_ERROR"
    NOT_READY = "NOT_READY"
    EXPIRED = "EXPIRED"
    FORBIDDEN = "FORBIDDEN"
    UNAUTHORIZED = "UNAUTHORIZED"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    RATE_LIMITED = "RATE_LIMITED"
    PARSE_ERROR = "PARSE_ERROR"
    TIMEOUT = "TIMEOUT"
    LLM_ERROR = "LLM_ERROR"
    CANCELLED = "CANCELLED"
    WORKER_CRASHED = "WORKER_CRASHED"
    DB_UNAVAILABLE = "DB_UNAVAILABLE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code means wherever it turns up. Its sentence is `errors.<CODE>` in the catalogues."""

    code: Code
    status: int
    """HTTP status when it is the answer to a request."""
    retryable: bool
    """Whether the same work may succeed when it is tried again."""

    @property
    def message(self) -> Message:
        return Message(f"errors.{self.code}")

    @property
    def sentence(self) -> str:
        """One English sentence for the person who is waiting."""
        return str(self.message)


MEANINGS: Mapping[Code, Meaning] = {
    meaning.code: meaning
    for meaning in (
        Meaning(Code.NOT_PDF, 415, False),
        Meaning(Code.TOO_LARGE, 413, False),
        Meaning(Code.BAD_MAPPING, 400, False),
        Meaning(Code.GW_4XX, 422, False),
        Meaning(Code.GW_5XX, 502, True),
        Meaning(Code.GW_TIMEOUT, 504, True),
        Meaning(Code.IO_ERROR, 507, True),
        Meaning(Code.NOT_READY, 409, False),
        Meaning(Code.EXPIRED, 404, False),
        Meaning(Code.FORBIDDEN, 403, False),
        Meaning(Code.UNAUTHORIZED, 401, False),
        Meaning(Code.NOT_FOUND, 404, False),
        Meaning(Code.CONFLICT, 409, False),
        Meaning(Code.VALIDATION_ERROR, 422, False),
        Meaning(Code.IDEMPOTENCY_CONFLICT, 409, False),
        Meaning(Code.RATE_LIMITED, 429, True),
        Meaning(Code.PARSE_ERROR, 422, False),
        Meaning(Code.TIMEOUT, 504, True),
        Meaning(Code.LLM_ERROR, 502, True),
        Meaning(Code.CANCELLED, 409, False),
        Meaning(Code.WORKER_CRASHED, 500, True),
        Meaning(Code.DB_UNAVAILABLE, 503, True),
        Meaning(Code.UNKNOWN, 500, True),
    )
}


class WaybillError(Exception):
    """The root of the tree. A subclass names its code; without a message, the error says what its code means.

    Give what a reader may meet as a `Message` (`msg("storage.full")`), so that pages can say it in their language. A
    plain string is for operators at the command line, who read English.
    """

    code: ClassVar[Code] = Code.UNKNOWN
    dependency: str | None = None
    """The name of the dependency that failed or asked us to wait, if the error knows it."""

    def __init__(
        self,
        message: str | Message | None = None,
        *,
        detail: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        dependency: str | None = None,
    ) -> None:
        said = message or MEANINGS[self.code].message
        self.message = str(said)
        """The English sentence."""
        self.key = said.key if isinstance(said, Message) else None
        self.params: dict[str, Any] = dict(said.params) if isinstance(said, Message) else {}
        self.detail = dict(detail) if detail else None
        self.retry_after = retry_after
        """Seconds the other side asked us to wait. Waiting for it costs a job no attempt."""
        if dependency is not None:
            self.dependency = dependency
        super().__init__(self.message)


# The document is at fault: a retry cannot help, and no dependency is to blame.


class DocumentFault(WaybillError):
    code = Code.PARSE_ERROR


class NotPdf(DocumentFault):
    code = Code.NOT_PDF


class TooLarge(DocumentFault):
    code = Code.TOO_LARGE


class BadMapping(DocumentFault):
    code = Code.BAD_MAPPING


class GatewayRejected(DocumentFault):
    code = Code.GW_4XX


# A dependency is at fault: a retry may help.


class DependencyFault(WaybillError):
    """A dependency failed. Its breaker counts this, unless the other side said when to come back.

    Name the dependency, in a subclass or here (`dependency="mail_server"`). Without a name, the first dependency of the
    job's kind is meant.
    """


class DependencyAway(DependencyFault):
    """Nobody was there to do the work: the connection was refused, the name was not found, the disk is full.

    It says nothing about the document, because no document got that far. So it never costs a job an attempt, and its
    breaker opens sooner than for answers that are wrong.
    """


class GatewayUnavailable(DependencyFault):
    code = Code.GW_5XX
    dependency = "gateway"


class GatewayUnreachable(GatewayUnavailable, DependencyAway):
    """The gateway did not even take the connection."""


class GatewayMistrusted(GatewayUnreachable):
    """Gateway and caller do not have the same secret, or something else answers there. A person has to mend that, and
    jobs wait meanwhile."""


class GatewayTimedOut(DependencyFault):
    code = Code.GW_TIMEOUT
    dependency = "gateway"


class LanguageModelFailed(DependencyFault):
    code = Code.LLM_ERROR
    dependency = "language_model"


class DatabaseUnavailable(WaybillError):
    code = Code.DB_UNAVAILABLE


class RateLimited(WaybillError):
    code = Code.RATE_LIMITED


class IoFailure(WaybillError):
    """Something could not be read or written. By itself it blames nobody: a stored document may be cut off."""

    code = Code.IO_ERROR


class StorageFailed(IoFailure, DependencyFault):
    """The storage as a whole has a problem, whatever it was asked for."""

    dependency = "storage"


class StorageUnreachable(StorageFailed, DependencyAway):
    """The storage did not even take the connection."""


class StorageFull(StorageFailed, DependencyAway):
    """There is no space left. A person has to make room, and the job can wait for that."""


# We refuse the request.


class Refused(WaybillError):
    code = Code.VALIDATION_ERROR


class UnsafePath(Refused):
    """A name that would lead outside the folder it belongs to."""


class NotReady(Refused):
    code = Code.NOT_READY


class Expired(Refused):
    code = Code.EXPIRED


class Forbidden(Refused):
    code = Code.FORBIDDEN


class Unauthorized(Refused):
    code = Code.UNAUTHORIZED


class NotFound(Refused):
    code = Code.NOT_FOUND


class Conflict(Refused):
    code = Code.CONFLICT


class IdempotencyConflict(Refused):
    code = Code.IDEMPOTENCY_CONFLICT


# A job's run ended badly.


class RunFault(WaybillError):
    """The run itself ended badly, whatever the document and the dependencies did."""


class TimeLimitExceeded(RunFault):
    code = Code.TIMEOUT


class Cancelled(RunFault):
    code = Code.CANCELLED


class WorkerCrashed(RunFault):
    code = Code.WORKER_CRASHED


class LeaseLost(RunFault):
    """Another worker owns the job now. Nothing this run does may have an effect, not even its failure."""
