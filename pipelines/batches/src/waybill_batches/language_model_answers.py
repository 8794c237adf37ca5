"""Reads what a language model's endpoint answers. Nothing in it is trusted: sizes, types and numbers are checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from waybill.errors import LanguageModelFailed
from waybill.messages import msg
from waybill_batches.language_model_errors import BadAnswer, FileNotTaken

_MOST_CHARACTERS = 256 * 1024
"""Of an answer's JSON. No form that a person has use for is longer."""
_MOST_TOKENS = 10**9
_CHARACTERS_PER_TOKEN = 4
_MOST_TRIES = 50
"""Places in a talkative answer at which a JSON object may begin."""
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What was used. `estimated` if the endpoint did not say."""

    taken_in: int = 0
    given_out: int = 0
    estimated: bool = False

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.taken_in + other.taken_in, self.given_out + other.given_out, self.estimated or other.estimated
        )

    @property
    def total(self) -> int:
        return self.taken_in + self.given_out


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of the model."""

    content: str
    model: str | None
    """The model that the endpoint says it was. None if it does not say."""


def tokens_in(text: str) -> int:
    """About how many tokens a text has."""
    return len(text) // _CHARACTERS_PER_TOKEN + 1


def usage_of(answer: Mapping[str, Any], sent: int) -> Tokens:
    """The tokens that an answer says it took, or an estimate. `sent` are the tokens that were probably sent."""
    said = answer.get("usage")
    if isinstance(said, dict) and _is_count(said.get("prompt_tokens")) and _is_count(said.get("completion_tokens")):
        return Tokens(said["prompt_tokens"], said["completion_tokens"])
    choice = _first_choice(answer)
    content = _content(choice.get("message")) if choice is not None else ""
    return Tokens(sent, tokens_in(content), estimated=True)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_TOKENS


def completion_of(answer: Mapping[str, Any]) -> Completion:
    """The model's answer; BadAnswer or FileNotTaken if there is none that can be used."""
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise LanguageModelFailed(msg("batches.model.no_completion"))
    choice = _first_choice(answer)
    if choice is None:
        raise BadAnswer(msg("batches.model.empty"))
    message, reason = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict):
        raise LanguageModelFailed(msg("batches.model.no_completion"))
    if reason == "content_filter":
        raise FileNotTaken(msg("batches.model.filtered"))
    if message.get("refusal"):
        raise BadAnswer(msg("batches.model.refused"))
    if reason == "length":
        raise BadAnswer(msg("batches.model.cut_off"))
    content = _content(message)
    if not content.strip():
        called = bool(message.get("tool_calls") or message.get("function_call"))
        raise BadAnswer(msg("batches.model.called_tool") if called else msg("batches.model.empty"))
    if len(content) > _MOST_CHARACTERS:
        raise BadAnswer(msg("batches.model.too_long"))
    model = answer.get("model")
    return Completion(content, model[:200] if isinstance(model, str) and model else None)


def _first_choice(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _content(message: Any) -> str:
    """The text of a message. Some endpoints send it in parts."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def json_in(content: str) -> Any:
    """The JSON object in an answer, which may stand among other words. Raises ValueError if there is none."""
    text = _THOUGHTS.sub("", content, count=1).strip()
    found = _loaded(text)
    if found is not None:
        return found
    at = -1
    for _ in range(_MOST_TRIES):
        if (at := text.find("{", at + 1)) < 0:
            break
        try:
            found, _end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        return found
    raise ValueError("it has no JSON object")


def _loaded(text: str) -> Any:
    try:
        found = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are no JSON


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
