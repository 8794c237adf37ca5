"""Why a document chose its mapping, in the reader's language."""

from __future__ import annotations

from waybill.web.languages import Language
from waybill_convert.views import ConversionView


def mapping_title(name: str, title: str, language: Language) -> str:
    """What a shipped mapping is called in the reader's language; any other is called what it calls itself."""
    key = f"convert.titles.{name}"  # no other mapping can have a shipped one's name
    return language.say(key) if key in language.messages else title


def recognition_words(job: ConversionView, language: Language) -> str:
    """By what it was recognised, and which mapping was next; empty if the mapping was named."""
    found = job.recognition
    if found is None:
        return ""
    by = "attachment" if found.by == "attachment" else "phrases"
    said = language.say(
        f"convert.recognised.{by}", title=mapping_title(job.mapping, found.title, language), score=found.score
    )
    if found.runner_up is None:
        return said
    other = found.runner_up
    title = mapping_title(other.name, other.title, language)
    return f"{said} {language.say('convert.recognised.next', title=title, score=other.score)}"
