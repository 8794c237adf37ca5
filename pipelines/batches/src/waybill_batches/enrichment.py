"""The work of an `enrich_file` job: the text of an extracted file goes to a language model, its fields come back.

The extracted result stays as it is; the fields are added to it as the member `enrichment`.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waybill.errors import DocumentFault, Expired, IoFailure, NotFound
from waybill.failures import classify
from waybill.messages import msg
from waybill_batches.clients.language_model import Conversation, LanguageModel, Misfit
from waybill_batches.extraction import EXTRACTOR, known_content, read_range
from waybill_batches.language_model_prompt import PROMPT_VERSION
from waybill_batches.language_model_settings import LanguageModelSettings
from waybill_batches.models import FileEnd, KnownResult
from waybill_batches.repository.enrichments import ExtractedFile
from waybill_batches.token_budget import TokenBudget
from waybill_batches.wanted_fields import WantedFields, misfit_of

if TYPE_CHECKING:
    from waybill.storage import Storage
    from waybill_engine import JobContext

_QUICK_BYTES = 256 * 1024
"""A result that is read at once. A larger one is read in another process, which delays nobody."""
_QUICK_WORK = 20_000
"""Comparisons that are made at once."""
_LARGEST_AMOUNT = 1e15
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Enriched:
    """A result with the fields in it, and how its file ends."""

    parts: Sequence[bytes]
    """A large result is neither copied nor read for one more member."""
    end: FileEnd

    async def chunks(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part


def enricher(settings: LanguageModelSettings, wanted: WantedFields) -> str:
    """What makes results here. With another model, prompt or schema they are made anew."""
    return f"{EXTRACTOR}, {settings.llm_model}, prompt {PROMPT_VERSION}, schema {wanted.digest}"


async def enriched_before(storage: Storage, file: ExtractedFile, known: KnownResult | None) -> Enriched | None:
    """A copy of what the same model made of the same content for the same owner; None if there is none."""
    result = await known_content(storage, known) if known is not None else None
    if known is None or result is None:
        return None
    return Enriched([result], known.end_of(file.number, 0))


async def enrich(
    job: JobContext, model: LanguageModel, wanted: WantedFields, file: ExtractedFile, maker: str
) -> Enriched:
    """Have the model fill the fields. It waits for its tenant's turn first, which costs no attempt."""
    try:
        extracted = await read_range(job.storage, file.key, file.at, file.at + file.bytes)
    except NotFound as error:
        raise Expired(msg("batches.file_gone")) from error
    text = await _text_in(job, extracted)
    if not text.strip():
        raise DocumentFault(msg("batches.model.no_text"))
    conversation = model.about(wanted, text)
    budget = TokenBudget(job, model.settings.llm_tokens_per_minute)
    await budget.take(conversation.expected)
    began = time.perf_counter()
    try:
        fields = await conversation.fields(_misfit_in(job, wanted))
    except Exception as error:
        job.log.info("language_model_failed", code=classify(error).code, **conversation.figures)
        await budget.correct(conversation.tokens.total)
        raise
    job.log.info("language_model_answered", **conversation.figures)
    await budget.correct(conversation.tokens.total)
    spent = (time.perf_counter() - began) * 1000
    parts = with_enrichment(extracted, _told(conversation, fields, len(text)))
    amounts = amounts_of(wanted, fields)
    end = FileEnd(
        file.number,
        file.milliseconds + spent,
        at=0,
        bytes=sum(map(len, parts)),
        extractor=maker,
        amounts=json.dumps(amounts) if amounts is not None else None,
    )
    return Enriched(parts, end)


async def _text_in(job: JobContext, extracted: bytes) -> str:
    return text_of(extracted) if len(extracted) <= _QUICK_BYTES else await job.run_blocking(text_of, extracted)


def text_of(extracted: bytes) -> str:
    """The text of a plain document, page by page. Cells of tables are in it, separated by tabs."""
    try:
        pages = json.loads(extracted)["pages"]
        texts = [(page.get("name"), page["text"]) for page in pages if str(page["text"]).strip()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IoFailure(msg("batches.model.extracted_broken")) from error
    return "\n\n".join(f"[{name}]\n{text}" if name else str(text) for name, text in texts)


def _misfit_in(job: JobContext, wanted: WantedFields) -> Misfit:
    """Checks answers, without delaying anybody if one takes long."""

    async def misfit(answer: Any) -> str | None:
        if wanted.work(answer) <= _QUICK_WORK:
            return wanted.misfit(answer)
        return await job.run_blocking(misfit_of, dict(wanted.schema), answer)

    return misfit


def _told(conversation: Conversation, fields: Mapping[str, Any], characters: int) -> dict[str, Any]:
    """The member that a result gets."""
    tokens: dict[str, Any] = {"in": conversation.tokens.taken_in, "out": conversation.tokens.given_out}
    if conversation.tokens.estimated:
        tokens["estimated"] = True
    return {
        "fields": dict(fields),
        "model": conversation.answered_by,
        "prompt_version": PROMPT_VERSION,
        "tokens": tokens,
        "cost": conversation.cost,
        "cut": {"sent": conversation.sent, "characters": characters} if conversation.is_cut else None,
    }


def with_enrichment(extracted: bytes, enrichment: Mapping[str, Any]) -> list[bytes]:
    """The extracted result with one more member, in parts: a large result need not be read, or copied."""
    end = extracted.rstrip()
    if not (extracted[:1] == b"{" and end[-1:] == b"}" and len(end) > 2):
        raise IoFailure(msg("batches.model.extracted_broken"))
    member = json.dumps(enrichment, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return [end[:-1], b',"enrichment":', member, b"}"]


def amounts_of(wanted: WantedFields, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """The numbers among the fields, for the totals of the summary; None if there are none."""
    values = {name: str(fields[name]) for name in wanted.names if _is_amount(fields.get(name))}
    currency = fields.get("currency")
    known = isinstance(currency, str) and _CURRENCY.fullmatch(currency) is not None
    return {"currency": currency if known else None, "values": values} if values else None


def _is_amount(value: Any) -> bool:
    if type(value) is int:
        return abs(value) <= _LARGEST_AMOUNT
    return type(value) is float and math.isfinite(value) and abs(value) <= _LARGEST_AMOUNT
