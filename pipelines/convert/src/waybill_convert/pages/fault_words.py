"""What went wrong with a document, in the reader's language.

The platform and convert have words for what they refuse. What is wrong with the document itself is a message of the
document library, which has catalogues of its own.
"""

from __future__ import annotations

from typing import Any

from waybill.web.languages import ENGLISH, Language
from waybill_convert.views import Fault


def fault_words(fault: Fault, language: Language) -> str:
    """Why a job failed: by its key, else in English by its own sentence, else by what its code means."""
    if fault.key is None or fault.key in language.messages or language is ENGLISH:
        return language.explain(fault)
    return finding_words({"message": "", "key": fault.key, "params": fault.params}, language) or language.explain(fault)


def finding_words(finding: Any, language: Language) -> str:
    """A finding, or what else the document library said; empty without a sentence. What was stored may be anything."""
    if not isinstance(finding, dict) or not isinstance(finding.get("message"), str):
        return ""
    if language is ENGLISH:
        return str(finding["message"])
    from waybill_documents.messages import tell  # many megabytes: see `reviser`

    return tell(finding, language.code)
