"""The best candidate follows from the phrases that were found, whatever order the candidates come in."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from waybill_documents.candidates import Candidate, Candidates, Ranking
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import EmbeddedRule, Recognise
from waybill_documents.text_lines import fold

PHRASES = ["Invoice", "Invoice Date", "Rechnung", "ACME", "ACME Ltd", "Total"]


def never() -> LoadedMapping:
    raise AssertionError("no mapping is loaded to be ranked")


def candidate(name: str, rule: dict[str, Any] | None = None, *, embedded: Any = None) -> Candidate:
    made = EmbeddedRule(output=embedded) if embedded else None
    return Candidate(name, name.title(), Recognise.model_validate(rule or {}), made, never)


def ranking(found: list[str], *candidates: Candidate) -> Ranking:
    catalogue = Candidates(candidates)
    return catalogue.by_phrases({fold(phrase) for phrase in found} & {*catalogue.index.phrases})


def best(found: list[str], *candidates: Candidate) -> list[str]:
    return [each.candidate.name for each in ranking(found, *candidates).best]


RULES = st.fixed_dictionaries(
    {},
    optional={
        "all": st.lists(st.sampled_from(PHRASES), max_size=3),
        "any": st.lists(st.sampled_from(PHRASES), max_size=3),
        "none": st.lists(st.sampled_from(PHRASES), max_size=1),
        "preference": st.integers(0, 2),
    },
)


@settings(max_examples=150)
@given(st.data(), st.lists(RULES, min_size=1, max_size=6), st.lists(st.sampled_from(PHRASES), unique=True))
def test_the_order_of_the_candidates_makes_no_difference(
    data: st.DataObject, rules: list[dict[str, Any]], found: list[str]
) -> None:
    candidates = [candidate(f"m{number}_v{1 + number % 2}", rule) for number, rule in enumerate(rules)]
    shuffled = data.draw(st.permutations(candidates))
    one, other = ranking(found, *candidates), ranking(found, *shuffled)
    assert one.entries == other.entries
    assert one.best == other.best
    assert one.is_settled == other.is_settled
    fitting = [each for each in one.entries if each.fits]
    assert list(one.entries[: len(fitting)]) == fitting
    assert bool(one.best) == bool(fitting)


def test_more_and_longer_phrases_say_more() -> None:
    lazy = candidate("lazy", {"all": ["Invoice"]})
    exact = candidate("exact", {"all": ["Invoice", "ACME Ltd"]})
    found = ranking(["Invoice", "ACME Ltd"], lazy, exact)
    assert [(each.candidate.name, each.score) for each in found.entries] == [("exact", 14), ("lazy", 7)]
    assert found.runner_up is not None
    assert found.runner_up.to_json() == {"name": "lazy", "title": "Lazy", "score": 7}


def test_of_alternatives_only_the_longest_counts() -> None:
    many = candidate("many", {"any": ["ACME", "Total", "Invoice"]})
    one = candidate("one", {"all": ["Invoice Date"]})
    assert [each.score for each in ranking(["ACME", "Total", "Invoice", "Invoice Date"], many, one).entries] == [11, 7]


def test_a_candidate_that_lacks_a_phrase_never_wins() -> None:
    half = candidate("half", {"all": ["Invoice Date", "Rechnung"]})
    short = candidate("short", {"all": ["ACME"]})
    assert best(["Invoice Date", "ACME"], half, short) == ["short"]
    assert best(["Invoice Date"], half, short) == []


def test_an_unwanted_phrase_rules_a_candidate_out() -> None:
    picky = candidate("picky", {"all": ["ACME Ltd"], "none": ["Rechnung"]})
    other = candidate("other", {"all": ["ACME"]})
    assert best(["ACME", "ACME Ltd"], picky, other) == ["picky"]
    assert best(["ACME", "ACME Ltd", "Rechnung"], picky, other) == ["other"]


def test_a_mapping_that_names_no_words_is_never_chosen() -> None:
    assert best(["Invoice"], candidate("any_document"), candidate("only_not", {"none": ["Total"]})) == []


def test_equals_are_a_tie_until_one_is_preferred() -> None:
    one, other = candidate("one", {"all": ["ACME"]}), candidate("other", {"all": ["ACME"]})
    assert best(["ACME"], one, other) == ["one", "other"]
    assert best(["ACME"], one, candidate("mine", {"all": ["ACME"], "preference": 1})) == ["mine"]


def test_the_latest_version_that_fits_stands_for_its_mapping() -> None:
    first = candidate("acme_v1", {"all": ["ACME Ltd", "Invoice"]})
    second = candidate("acme_v2", {"all": ["ACME Ltd"]})
    tenth = candidate("acme_v10", {"all": ["ACME Ltd", "Total"]})
    assert best(["ACME Ltd", "Invoice", "Total"], first, second, tenth) == ["acme_v10"]
    assert best(["ACME Ltd", "Invoice"], first, second, tenth) == ["acme_v2"]


def test_an_embedded_invoice_outweighs_all_words_and_stays_as_it_is() -> None:
    cii, ubl = candidate("en16931_cii", embedded="cii"), candidate("en16931_ubl", embedded="ubl")
    wordy = candidate("wordy", {"all": ["x" * 199 + str(number) for number in range(9)]})
    found = Candidates([ubl, wordy, cii]).by_attachment()
    assert [(each.candidate.name, each.score) for each in found.entries] == [
        ("en16931_cii", 1000),
        ("en16931_ubl", 1000),
        ("wordy", 0),
    ]
    assert [each.candidate.name for each in found.best] == ["en16931_cii"]
    assert wordy.phrases.most == 999


def test_a_choice_waits_for_a_candidate_that_may_still_overtake() -> None:
    lazy = candidate("lazy", {"all": ["ACME"]})
    exact = candidate("exact", {"all": ["ACME Ltd", "Total"]})
    assert not ranking(["ACME", "ACME Ltd"], lazy, exact).is_settled
    assert ranking(["ACME"], lazy, exact).is_settled
    assert ranking(["ACME", "ACME Ltd", "Total"], lazy, exact).is_settled
    assert not ranking([], lazy, exact).is_settled
    assert not ranking(["ACME"], candidate("picky", {"all": ["ACME"], "none": ["Rechnung"]})).is_settled
