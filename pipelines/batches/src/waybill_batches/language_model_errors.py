"""What can go wrong with a language model, each with what it means to the job.

Its endpoint may be away, slow, busy or broken: then the endpoint's breaker hears of it. A person may have to mend the
settings: then jobs wait. Or the endpoint works, and what it says about one file is of no use: that blames nobody else.
"""

from __future__ import annotations

from typing import ClassVar

from waybill.errors import Code, DependencyAway, LanguageModelFailed, RateLimited, Refused, WaybillError


class LanguageModelUnreachable(LanguageModelFailed, DependencyAway):
    """The endpoint did not even take the connection."""


class LanguageModelMistrusted(LanguageModelUnreachable):
    """The endpoint refuses our key, has no such model, has no more credit for us, or we were not told where it is. A
    person has to mend that, and jobs wait meanwhile."""


class LanguageModelBusy(RateLimited):
    """The endpoint asks the whole fleet to come back later. Waiting costs no attempt and is no failure."""

    dependency = "language_model"


class BadAnswer(WaybillError):
    """The model answered, and the answer is of no use. Another one may be, and no breaker counts it."""

    code: ClassVar[Code] = Code.LLM_ERROR


class FileNotTaken(Refused):
    """The endpoint does not take this file's text at all, so asking again is of no use."""
