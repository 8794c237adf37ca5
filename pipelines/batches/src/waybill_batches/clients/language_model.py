"""The client of an OpenAI-compatible endpoint: it has a language model fill the wanted fields from a text.

Endpoints differ in what they take. A request begins with everything that helps (the schema, a temperature of 0) and is
asked again without what the endpoint refuses; what it took is remembered. No redirect is followed, no proxy of the
environment is used, and time and size of every answer are bounded.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx

from waybill.config import load
from waybill.errors import LanguageModelFailed, WaybillError
from waybill.failures import classify
from waybill.gateway_client.connections import json_object
from waybill.messages import msg
from waybill.telemetry import spans
from waybill.telemetry.metrics import LANGUAGE_MODEL_CALL, LANGUAGE_MODEL_TOKENS
from waybill_batches.language_model_answers import Completion, Tokens, completion_of, json_in, tokens_in, usage_of
from waybill_batches.language_model_errors import (
    BadAnswer,
    FileNotTaken,
    LanguageModelMistrusted,
    LanguageModelUnreachable,
)
from waybill_batches.language_model_prompt import Messages, mended, question
from waybill_batches.language_model_refusals import ModelRefusal
from waybill_batches.language_model_settings import LanguageModelSettings
from waybill_batches.settings import BatchSettings
from waybill_batches.wanted_fields import WantedFields

MOST_ANSWER_BYTES = 4 * 2**20
MOST_REFUSAL_BYTES = 64 * 1024
_CONNECT_SECONDS = 10.0
_MOST_REMEMBERED = 256
_OLD_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"

Misfit = Callable[[Any], Awaitable[str | None]]
"""Says why an answer does not fit what is wanted; None if it does."""


@dataclass(frozen=True, slots=True)
class _QuestionForm:
    """How a question is put."""

    schema: int = 0
    """0 sends the schema to the endpoint, 1 asks it for some JSON, 2 leaves that to the prompt."""
    limit: str = _OLD_LIMIT
    temperature: bool = True

    def request(self, model: str, messages: Messages, wanted: WantedFields, most_output: int) -> dict[str, Any]:
        request: dict[str, Any] = {"model": model, "messages": messages, "stream": False, self.limit: most_output}
        if self.temperature:
            request["temperature"] = 0
        if self.schema == 0:
            named = {"name": "fields", "schema": dict(wanted.schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        elif self.schema == 1:
            request["response_format"] = {"type": "json_object"}
        return request

    def without(self, refusal: ModelRefusal) -> _QuestionForm | None:
        """The same without what was refused; None if there is nothing left to leave out."""
        if self.limit == _OLD_LIMIT and refusal.names(_OLD_LIMIT):
            return replace(self, limit=_NEW_LIMIT)
        if self.temperature and refusal.names("temperature"):
            return replace(self, temperature=False)
        return replace(self, schema=self.schema + 1) if self.schema < 2 else None


class TextTooLong(FileNotTaken):
    """The model cannot read so much text at once."""


class LanguageModel:
    """A client of the endpoint, shared by all jobs of a worker. The owner closes it."""

    def __init__(self, settings: LanguageModelSettings) -> None:
        if settings.llm_url is None:
            raise LanguageModelMistrusted(msg("batches.model.not_configured"))
        self._url = httpx.URL(f"{settings.llm_url}/chat/completions")
        self._key = settings.llm_key.get_secret_value() if settings.llm_key is not None else None
        self._seconds = settings.llm_timeout
        self.settings = settings
        self._limit, self._temperature = _OLD_LIMIT, True
        self._schemas: OrderedDict[str, int] = OrderedDict()
        """How the endpoint takes which schema, as far as it was asked."""
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(self._seconds, connect=min(_CONNECT_SECONDS, self._seconds), pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30.0),
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.aclose()

    def about(self, wanted: WantedFields, text: str) -> Conversation:
        """A conversation about a text. It costs nothing until it is asked for the fields."""
        return Conversation(self, wanted, text)

    async def ask(self, messages: Messages, wanted: WantedFields) -> dict[str, Any]:
        """The endpoint's answer to a question, in the richest form that it takes."""
        digest = wanted.digest
        form: _QuestionForm | None = _QuestionForm(self._schemas.get(digest, 0), self._limit, self._temperature)
        while form is not None:
            request = form.request(self.settings.llm_model, messages, wanted, self.settings.llm_max_output)
            answer = await self._post(json.dumps(request, ensure_ascii=False).encode("utf-8", "replace"))
            if not isinstance(answer, ModelRefusal):
                self._remember(digest, form)
                return answer
            if answer.is_too_long:
                raise TextTooLong(msg("batches.model.text_too_long"))
            error = answer.error
            form = form.without(answer) if answer.is_of_form else None
        raise error

    def _remember(self, digest: str, form: _QuestionForm) -> None:
        self._limit, self._temperature = form.limit, form.temperature
        self._schemas[digest] = form.schema
        if len(self._schemas) > _MOST_REMEMBERED:
            self._schemas.popitem(last=False)

    async def _post(self, request: bytes) -> dict[str, Any] | ModelRefusal:
        began, outcome = time.perf_counter(), "ok"
        try:
            answer = await self._exchange(request)
            if isinstance(answer, ModelRefusal):
                outcome = "refused"
            return answer
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except Exception as error:
            outcome = classify(error).code.value
            raise
        finally:
            LANGUAGE_MODEL_CALL.labels(outcome).observe(time.perf_counter() - began)

    async def _exchange(self, request: bytes) -> dict[str, Any] | ModelRefusal:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        place = {"server.address": self._url.host, "url.path": self._url.path, "http.request.method": "POST"}
        with spans.span("POST /chat/completions", kind="client", attributes=place) as span, _named(self._seconds):
            async with (
                asyncio.timeout(self._seconds),
                self._http.stream("POST", self._url, content=request, headers=headers) as response,
            ):
                span.set({"http.response.status_code": response.status_code})
                if response.status_code != httpx.codes.OK:
                    body = await _beginning(response, MOST_REFUSAL_BYTES)
                    return ModelRefusal.read(response.status_code, response.headers, body, hide=self._key)
                if "event-stream" in response.headers.get("content-type", ""):
                    raise LanguageModelFailed(msg("batches.model.no_completion"))
                body = await _beginning(response, MOST_ANSWER_BYTES + 1)
            if len(body) > MOST_ANSWER_BYTES:
                raise LanguageModelFailed(msg("batches.model.too_large", megabytes=MOST_ANSWER_BYTES // 2**20))
            answer = json_object(body)
            if isinstance(answer.get("error"), dict) and "choices" not in answer:  # some say it only here
                status = answer["error"].get("code")
                status = status if type(status) is int and 400 <= status < 600 else 502
                return ModelRefusal.read(status, response.headers, body, hide=self._key)
            if not answer:
                raise LanguageModelFailed(msg("batches.model.no_completion"))
            return answer


class Conversation:
    """What is said about one text, and what that cost. The model answers at most twice: one answer may be mended."""

    def __init__(self, model: LanguageModel, wanted: WantedFields, text: str) -> None:
        self._model = model
        self._wanted = wanted
        self._text = text
        self.sent = min(len(text), model.settings.llm_max_input)
        """How many characters of the text are sent."""
        self.tokens = Tokens()
        """What was used so far, whatever came of it."""
        self.answered_by = model.settings.llm_model

    @property
    def is_cut(self) -> bool:
        return self.sent < len(self._text)

    @property
    def expected(self) -> int:
        """About how many tokens it takes."""
        return self._weight(self._question()) + self._model.settings.llm_max_output

    @property
    def cost(self) -> float | None:
        settings = self._model.settings
        if settings.llm_price_in is None or settings.llm_price_out is None:
            return None
        spent = self.tokens.taken_in * settings.llm_price_in + self.tokens.given_out * settings.llm_price_out
        return round(spent / 1_000_000, 9)

    @property
    def figures(self) -> dict[str, Any]:
        """What a log says of it: nothing of the text, and nothing of the answer."""
        return {
            "model": self.answered_by,
            "characters": self.sent,
            "tokens_in": self.tokens.taken_in,
            "tokens_out": self.tokens.given_out,
            "cost": self.cost,
        }

    async def fields(self, misfit: Misfit) -> dict[str, Any]:
        """The fields as the model filled them. BadAnswer if it answers nothing that fits, even when told why."""
        completion = await self._first()
        found, why = await self._judged(completion, misfit)
        if why is not None:
            try:
                completion = await self._said(mended(self._question(), completion.content, why))
            except TextTooLong:  # there was room for the text, and there is none for a second try
                raise BadAnswer(msg("batches.model.misfit", why=why)) from None
            found, why = await self._judged(completion, misfit)
        if why is not None:
            raise BadAnswer(msg("batches.model.misfit", why=why))
        self.answered_by = completion.model or self.answered_by
        return found

    async def _first(self) -> Completion:
        try:
            return await self._said(self._question())
        except TextTooLong:
            # Nobody knows how long is too long, so it gets one more chance with half of it.
            self.sent //= 2
            return await self._said(self._question())

    async def _said(self, messages: Messages) -> Completion:
        answer = await self._model.ask(messages, self._wanted)
        used = usage_of(answer, self._weight(messages))
        self.tokens += used
        LANGUAGE_MODEL_TOKENS.labels("in").inc(used.taken_in)
        LANGUAGE_MODEL_TOKENS.labels("out").inc(used.given_out)
        return completion_of(answer)

    async def _judged(self, completion: Completion, misfit: Misfit) -> tuple[dict[str, Any], str | None]:
        try:
            found = json_in(completion.content)
        except ValueError as error:
            return {}, str(error)
        if not isinstance(found, dict):
            return {}, "it is no JSON object"
        return found, await misfit(found)

    def _question(self) -> Messages:
        return question(self._wanted.schema, self._text[: self.sent])

    @staticmethod
    def _weight(messages: Messages) -> int:
        return sum(tokens_in(message["content"]) for message in messages)


async def _beginning(response: httpx.Response, most: int) -> bytes:
    """At most so many bytes of the body."""
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) >= most:
            break
    return bytes(read[:most])


@contextmanager
def _named(seconds: float) -> Iterator[None]:
    """Turn what breaks a call into an error of the taxonomy."""
    try:
        yield
    except WaybillError:
        raise
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise LanguageModelUnreachable(msg("batches.model.unreachable")) from error
    except (httpx.TimeoutException, TimeoutError) as error:
        raise LanguageModelFailed(msg("batches.model.no_answer", seconds=f"{seconds:g}")) from error
    except httpx.TransportError as error:
        raise LanguageModelFailed(msg("batches.model.connection_lost")) from error
    except httpx.HTTPError as error:
        raise LanguageModelFailed(msg("batches.model.no_completion")) from error


@asynccontextmanager
async def language_model() -> AsyncIterator[LanguageModel]:
    """The worker's client, as the settings say: `await job.use(language_model)`."""
    model = LanguageModel(load(BatchSettings))
    try:
        yield model
    finally:
        await model.close()
