"""The index finds the phrases that a search for each one by itself finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.pages import line, page
from waybill_documents.phrase_index import PhraseIndex
from waybill_documents.text_lines import Lines, fold, lines_of

WORDS = st.sampled_from(["No", "No.", "Invoice", "NoInvoice", "in", "voice", "I", ":", "Total", "A", "payer", "É"])
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
PHRASES = TEXTS.map(fold).filter(bool)


def found_one_by_one(lines: Lines, phrases: set[str]) -> set[str]:
    return {phrase for phrase in phrases if next(lines.find(phrase), None) is not None}


@settings(max_examples=200)
@given(st.lists(TEXTS, max_size=4), st.sets(PHRASES, max_size=12))
def test_it_finds_what_a_search_for_each_phrase_finds(texts: list[str], phrases: set[str]) -> None:
    lines = lines_of(page(*[(20.0, 20.0 * number, text) for number, text in enumerate(texts)]))
    assert PhraseIndex(phrases).found(lines) == found_one_by_one(lines, phrases)


def test_a_phrase_is_made_of_whole_words_of_one_line() -> None:
    printed = page((20, 20, "PT. Simon  Jaya: Invoice"), (20, 40, "Total due"))
    index = PhraseIndex(map(fold, ["PT Simon Jaya", "Simon", "Jaya Inv", "Invoice Total", "Sim", "total due"]))
    assert index.found(lines_of(printed)) == {"ptsimonjaya", "simon", "totaldue"}


def test_one_word_may_be_two_in_the_phrase_and_the_other_way_round() -> None:
    index = PhraseIndex(map(fold, ["No. Invoice", "Tax ID"]))
    given_lines = lines_of(page((20, 20, "No.Invoice"), (20, 40, "T ax I D")))
    assert index.found(given_lines) == {"noinvoice", "taxid"}


def test_nothing_is_found_by_no_phrases() -> None:
    assert PhraseIndex([]).found(Lines(page(), [line("anything at all")])) == set()
