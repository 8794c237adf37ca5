"""Why a batch or a file failed, in the reader's language.

The platform and the pipelines have words for what they refuse. What is wrong with a document itself is a message of the
document library, which has catalogues of its own.
"""

from __future__ import annotations

from waybill.messages.language import Explained
from waybill.web.languages import ENGLISH, Language


def fault_words(fault: Explained, language: Language) -> str:
    """By its key, else in English by its own sentence, else by what its code means."""
    if fault.key is None or fault.key in language.messages or language is ENGLISH:
        return language.explain(fault)
    # Imported late, because it takes many megabytes, and only documents with faults need it.
    from waybill_documents.messages import tell

    said = tell({"message": "", "key": fault.key, "params": dict(fault.params)}, language.code)
    return said or language.explain(fault)
