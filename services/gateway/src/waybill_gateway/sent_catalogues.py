"""The catalogues that came with documents for `auto`: what the mappings of a request are recognised by.

Like mappings, catalogues are read in the sandbox. A parser remembers the last ones by the hash of their bytes, so that
a tenant's next document costs no more with a hundred mappings than with one. Only the mapping that is chosen is
compiled.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from waybill_documents.candidates import Candidate, Candidates
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import EmbeddedRule, Recognise
from waybill_documents.messages import DocumentMessage
from waybill_gateway.mappings import Mappings
from waybill_gateway.sent_mappings import CompiledMappings, SentMappings, read_sent

_MOST_REMEMBERED = 8


class SentCatalogues:
    """The catalogues that were used last."""

    def __init__(self, own: Mappings, compiled: CompiledMappings, *, most: int = _MOST_REMEMBERED) -> None:
        self._own = own
        self._compiled = compiled
        self._most = most
        self._catalogues: OrderedDict[bytes, Candidates] = OrderedDict()

    def __len__(self) -> int:
        return len(self._catalogues)

    def get(self, sent: Path) -> Candidates:
        """The candidates of a request. Raises `MappingFault` if what was sent is not a catalogue."""
        content = sent.read_bytes()
        identity = hashlib.sha256(content).digest()
        if identity in self._catalogues:
            self._catalogues.move_to_end(identity)
            return self._catalogues[identity]
        made = self._made(read_sent(content, self._compiled))
        self._catalogues[identity] = made
        if len(self._catalogues) > self._most:
            self._catalogues.popitem(last=False)
        return made

    def _made(self, sent: SentMappings) -> Candidates:
        theirs = [_candidate(sent, name) for name in sent.files]
        # A catalogue that was pinned names which of ours belong to it. Without that, all do.
        ours = (
            [self._pinned(name, sha256) for name, sha256 in sent.own.items()]
            if sent.own
            else [each for each in self._own.candidates.all if each.name not in sent.files]
        )
        return Candidates([*theirs, *ours])

    def _pinned(self, name: str, sha256: str) -> Candidate:
        """One of ours. Among others than those that were pinned, a retry could choose differently."""
        loaded = self._own[name] if name in self._own.names else None
        if loaded is None or loaded.sha256 != sha256:
            raise MappingFault(DocumentMessage("recognition.other_catalogue", name=name))
        return Candidate.of(loaded)


def _candidate(sent: SentMappings, name: str) -> Candidate:
    """What the choice needs to know of a mapping. Everything else is checked when it is compiled."""
    try:
        document = json.loads(sent.files[name].document)
        embedded = document.get("embedded")
        return Candidate(
            name,
            str(document.get("title", name))[:200],
            Recognise.model_validate(document.get("recognise") or {}),
            EmbeddedRule.model_validate(embedded) if embedded is not None else None,
            partial(_loaded, sent, name),
        )
    except (ValueError, AttributeError, RecursionError, ValidationError):
        sent.get(name)  # says what is wrong
        raise


def _loaded(sent: SentMappings, name: str) -> LoadedMapping:
    loaded = sent.get(name)
    if loaded is None:  # it was made from what was sent
        raise KeyError(name)
    return loaded
