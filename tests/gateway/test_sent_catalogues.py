"""The catalogue that comes with a document for `auto`: remembered, compiled for the chosen one only, and exact."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from support.pages import drawn
from waybill_documents.candidates import Candidates
from waybill_documents.document_reader import read_pdf
from waybill_documents.faults import DocumentRejected, MappingFault
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.stages import Stages
from waybill_gateway.mappings import Mappings
from waybill_gateway.sent_catalogues import SentCatalogues
from waybill_gateway.sent_mappings import CompiledMappings

OWN = Mappings()


@pytest.fixture
def compiled() -> CompiledMappings:
    return CompiledMappings()


@pytest.fixture
def catalogues(compiled: CompiledMappings) -> SentCatalogues:
    return SentCatalogues(OWN, compiled, most=2)


def entry(name: str, *phrases: str, **more: Any) -> dict[str, str]:
    written = {"format": 1, "name": name, "title": name, "recognise": {"all": phrases}, "fields": {}, **more}
    document = json.dumps(written)
    return {"name": name, "sha256": hashlib.sha256(document.encode()).hexdigest(), "document": document}


def pinned(name: str, /, **changed: str) -> dict[str, str]:
    return {"name": name, "sha256": OWN[name].sha256} | changed


@pytest.fixture
def sent(tmp_path: Path) -> Any:
    def write(*entries: Any) -> Path:
        file = tmp_path / "mappings"
        file.write_text(json.dumps(entries))
        return file

    return write


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    return drawn(tmp_path / "letter.pdf", lambda canvas: canvas.drawString(72, 700, "ACME Ltd Invoice"))


def chosen(letter: Path, candidates: Candidates) -> str:
    return read_pdf(letter, candidates, PdfLimits(), Stages(lambda: 0.0)).loaded.mapping.name


def test_what_was_sent_competes_with_the_gateways_own(catalogues: SentCatalogues, sent: Any, letter: Path) -> None:
    candidates = catalogues.get(sent(entry("acme_v1", "ACME Ltd"), entry("oyo_v1", "nothing like this")))
    assert sorted(each.name for each in candidates.all) == sorted({*OWN.names, "acme_v1"})
    assert chosen(letter, candidates) == "acme_v1"
    assert "nothing like this" in {phrase for each in candidates.all for phrase in each.recognise.all}


def test_only_the_pinned_ones_of_the_gateways_own_are_candidates(catalogues: SentCatalogues, sent: Any) -> None:
    candidates = catalogues.get(sent(entry("acme_v1", "ACME Ltd"), pinned("oyo_v1")))
    assert [each.name for each in candidates.all] == ["acme_v1", "oyo_v1"]


@pytest.mark.parametrize("other", [{"sha256": "0" * 64}, {"name": "of_the_next_release_v1"}])
def test_a_pinned_one_that_is_not_here_is_refused(catalogues: SentCatalogues, sent: Any, other: dict[str, str]) -> None:
    with pytest.raises(MappingFault) as raised:
        catalogues.get(sent(pinned("oyo_v1", **other)))
    assert raised.value.says.key == "recognition.other_catalogue"


def test_only_the_chosen_mapping_is_compiled(
    catalogues: SentCatalogues, compiled: CompiledMappings, sent: Any, letter: Path
) -> None:
    broken = entry("broken_v1", "Rechnung", tables=7)
    candidates = catalogues.get(sent(broken, entry("acme_v1", "ACME Ltd"), entry("other_v1", "Facture")))
    assert len(compiled) == 0
    assert chosen(letter, candidates) == "acme_v1"
    assert len(compiled) == 1


def test_a_chosen_mapping_that_is_wrong_is_named(catalogues: SentCatalogues, sent: Any, letter: Path) -> None:
    candidates = catalogues.get(sent(entry("broken_v1", "ACME Ltd", tables=7)))
    with pytest.raises(MappingFault) as raised:
        chosen(letter, candidates)
    assert (raised.value.says.key, raised.value.says.params["name"]) == ("mapping.sent_wrong", "broken_v1")


@pytest.mark.parametrize("wrong", [{"recognise": 7}, {"recognise": {"all": "x", "sum": []}}, {"embedded": []}])
def test_a_rule_that_cannot_be_read_is_a_wrong_mapping(
    catalogues: SentCatalogues, sent: Any, wrong: dict[str, Any]
) -> None:
    with pytest.raises(MappingFault) as raised:
        catalogues.get(sent(entry("broken_v1", **wrong)))
    assert raised.value.says.key == "mapping.sent_wrong"


def test_a_catalogue_is_remembered_while_it_is_in_use(catalogues: SentCatalogues, sent: Any) -> None:
    first = catalogues.get(sent(entry("a_v1", "A")))
    catalogues.get(sent(entry("b_v1", "B")))
    assert catalogues.get(sent(entry("a_v1", "A"))) is first
    catalogues.get(sent(entry("c_v1", "C")))
    assert len(catalogues) == 2
    assert catalogues.get(sent(entry("a_v1", "A"))) is first, "the longest unused one was forgotten"


def test_the_order_in_which_they_were_sent_makes_no_difference(
    catalogues: SentCatalogues, sent: Any, letter: Path
) -> None:
    entries = [entry("acme_v1", "ACME Ltd"), entry("firm_v1", "ACME Ltd"), pinned("oyo_v1")]
    said = []
    for given in (entries, entries[::-1]):
        with pytest.raises(DocumentRejected) as raised:
            chosen(letter, catalogues.get(sent(*given)))
        said.append(raised.value.says.params)
    assert said[0] == said[1]
    assert [each["name"] for each in said[0]["candidates"]] == ["acme_v1", "firm_v1", "oyo_v1"]
