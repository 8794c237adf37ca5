"""What a reader is told about a failed document, in whosever words it was said."""

from __future__ import annotations

import pytest

from waybill.web.languages import ENGLISH, LANGUAGES
from waybill_convert.pages.fault_words import fault_words, finding_words
from waybill_convert.views import Fault
from waybill_documents.messages import DocumentMessage

INDONESIAN = LANGUAGES["id"]


def fault(message: DocumentMessage) -> Fault:
    return Fault("GW_4XX", message.english, [], message.key, message.params)


def test_what_the_gateway_refuses_is_said_in_the_platforms_words() -> None:
    large = Fault("TOO_LARGE", "Too large.", key="gateway.too_large", params={"megabytes": 50})
    assert fault_words(large, ENGLISH) == "This file is larger than 50 MB. Please send a smaller one."
    assert fault_words(large, INDONESIAN) == "Berkas ini lebih besar dari 50 MB. Silakan kirim yang lebih kecil."


def test_what_is_wrong_with_a_document_is_said_in_the_document_librarys_words() -> None:
    damaged = fault(DocumentMessage("pdf.too_many_pages", pages=1200, most=1000))
    assert fault_words(damaged, ENGLISH) == "The PDF has 1,200 pages; at most 1,000 are read."
    assert fault_words(damaged, INDONESIAN).startswith("PDF ini memiliki 1.200 halaman")


def test_the_first_of_several_findings_is_said_in_the_mappings_own_words() -> None:
    first = DocumentMessage("check.own_words", messages={"en": "Wrong.", "id": "Salah."})
    several = fault(DocumentMessage("document.first_finding", first=first, count=2))
    assert fault_words(several, INDONESIAN).startswith("Salah. (")
    assert "2" in fault_words(several, INDONESIAN)


@pytest.mark.parametrize("key", [None, "of.another_version"])
def test_what_has_no_words_is_said_by_its_sentence_in_english_and_by_its_code_elsewhere(key: str | None) -> None:
    odd = Fault("GW_4XX", "Said by another version.", key=key)
    assert fault_words(odd, ENGLISH) == "Said by another version."
    assert fault_words(odd, INDONESIAN) == INDONESIAN.say("errors.GW_4XX")


@pytest.mark.parametrize("finding", [None, "text", {}, {"message": 7}])
def test_a_stored_finding_may_be_anything(finding: object) -> None:
    assert finding_words(finding, INDONESIAN) == ""
