"""The mappings that `auto` chooses from, and their ranking by what was found in a document.

The ranking depends on the document and on the candidates, and on nothing else: not on their order, nor on the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from waybill_documents.mapping.loader import LoadedMapping, LossRule
from waybill_documents.mapping.model import EmbeddedRule, Mapping, Recognise
from waybill_documents.phrase_index import PhraseIndex
from waybill_documents.recognition import BY_ATTACHMENT, Phrases

_VERSION = re.compile(r"(?P<family>.+)_v(?P<number>[1-9][0-9]{0,8})", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A mapping, as far as the choice needs to know it."""

    name: str
    title: str
    recognise: Recognise
    embedded: EmbeddedRule | None
    load: Callable[[], LoadedMapping]
    """Makes the whole mapping, once it is chosen."""
    phrases: Phrases = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phrases", Phrases(self.recognise))

    @classmethod
    def of(cls, loaded: LoadedMapping) -> Candidate:
        """A mapping that is loaded already."""
        mapping: Mapping = loaded.mapping
        return cls(mapping.name, mapping.title, mapping.recognise, mapping.embedded, lambda: loaded)

    def with_loss(self, loss: LossRule) -> Candidate:
        """The same candidate, with another choice of what e-invoices may lose."""
        return replace(self, load=lambda: self.load().with_loss(loss))

    @property
    def version(self) -> tuple[str, int]:
        """`saeco_v2` is the second of `saeco`; a name without a version is the only one of its family."""
        match = _VERSION.fullmatch(self.name)
        return (match["family"], int(match["number"])) if match else (self.name, 0)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate, and what speaks for it."""

    candidate: Candidate
    score: int
    missing: tuple[str, ...] = ()
    """The required phrases that were not found."""
    unwanted: tuple[str, ...] = ()
    """The phrases that were found and should not be there."""

    @property
    def fits(self) -> bool:
        """Whether the candidate can read the document. One that names no words to recognise it by never does."""
        return self.score > 0 and not self.missing and not self.unwanted

    @property
    def strength(self) -> tuple[int, int, bool]:
        """Compares candidates that fit: by score, then as their authors say, then the invoice as it was embedded."""
        candidate = self.candidate
        as_it_is = candidate.embedded is not None and candidate.embedded.output == "cii"
        return self.score, candidate.recognise.preference, as_it_is

    def to_json(self) -> dict[str, Any]:
        """For a record, and for a person who has to choose."""
        return {"name": self.candidate.name, "title": self.candidate.title, "score": self.score}


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates by what was found so far."""

    entries: tuple[Ranked, ...]
    """The best first: those that fit, then the others by their score."""
    best: tuple[Ranked, ...]
    """Those that fit and that no other one surpasses: one, or several in a tie, or none."""

    @property
    def runner_up(self) -> Ranked | None:
        """The next one after the best; None if nothing speaks for any other."""
        following = next((each for each in self.entries if each is not self.best[0]), None)
        return following if following is not None and following.score else None

    @property
    def is_settled(self) -> bool:
        """Whether there is one best, and no reason to expect that further pages change that.

        An unwanted phrase may still come. And a candidate that has half of what it looks for already, and would have a
        higher score with the rest, may still overtake.
        """
        if len(self.best) != 1:
            return False
        [best] = self.best
        if best.candidate.recognise.none:
            return False
        return not any(
            each.candidate.phrases.most > best.score and 2 * each.score >= each.candidate.phrases.most
            for each in self.entries
            if each is not best and not each.unwanted
        )


class Candidates:
    """A catalogue to choose from. Making one takes time for each mapping, choosing hardly does, so keep it."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.all = tuple(sorted(candidates, key=lambda candidate: candidate.name))
        self.reads_embedded = any(candidate.embedded is not None for candidate in self.all)
        self._by_phrase: dict[str, list[Candidate]] = {}
        for candidate in self.all:
            for phrase in candidate.phrases.folded if candidate.embedded is None else ():
                self._by_phrase.setdefault(phrase, []).append(candidate)
        self.index = PhraseIndex(self._by_phrase)
        self._without_any = {each: _by_phrases(each, frozenset()) for each in self.all}

    def with_loss(self, loss: LossRule) -> Candidates:
        """The same candidates, but for what e-invoices may lose when they are converted."""
        return Candidates(each.with_loss(loss) if each.embedded is not None else each for each in self.all)

    def by_phrases(self, found: AbstractSet[str]) -> Ranking:
        """The ranking of a document with these phrases. It costs nothing for candidates that have none of them."""
        touched = {candidate for phrase in found for candidate in self._by_phrase[phrase]}
        ranked = sorted((_by_phrases(each, found) for each in touched), key=_order)
        return _ranking([*ranked, *(without for each, without in self._without_any.items() if each not in touched)])

    def by_attachment(self) -> Ranking:
        """The ranking of a PDF with an embedded invoice. Its pages say the same once more, so nobody looks at them."""
        ranked = (Ranked(each, BY_ATTACHMENT if each.embedded is not None else 0) for each in self.all)
        return _ranking(sorted(ranked, key=_order))


def _by_phrases(candidate: Candidate, found: AbstractSet[str]) -> Ranked:
    phrases = candidate.phrases
    score = phrases.score(found) if candidate.embedded is None else 0
    return Ranked(candidate, score, tuple(phrases.missing(found)), tuple(phrases.unwanted(found)))


def _ranking(ranked: Sequence[Ranked]) -> Ranking:
    fitting = _latest(each for each in ranked if each.fits)
    strongest = max((each.strength for each in fitting), default=None)
    return Ranking(tuple(ranked), tuple(each for each in fitting if each.strength == strongest))


def _order(ranked: Ranked) -> tuple[bool, int, int, bool, str]:
    score, preference, as_it_is = ranked.strength
    return not ranked.fits, -score, -preference, not as_it_is, ranked.candidate.name


def _latest(fitting: Iterable[Ranked]) -> list[Ranked]:
    """Of several versions of one mapping the latest: whoever made it meant it to replace the others."""
    latest: dict[str, Ranked] = {}
    for each in fitting:
        family, number = each.candidate.version
        known = latest.get(family)
        if known is None or number > known.candidate.version[1]:
            latest[family] = each
    return list(latest.values())
