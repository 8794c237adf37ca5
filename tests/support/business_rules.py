"""The business rules of EN 16931, as their publishers wrote them: CEN's for UBL, those of Factur-X for CII.

`make test` fetches them beside the environment (tests/documents/hybrid/rules.lock).
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from lxml import etree

from waybill_documents.hybrid import Syntax

_FOLDER = Path(sys.prefix) / "en16931"
_RULES = {
    Syntax.UBL: _FOLDER / "facturx/xsd_and_schematron/ubl-2.1/EN16931-UBL-validation.xslt",
    Syntax.CII: _FOLDER / "facturx/xsd_and_schematron/facturx-en16931/FACTUR-X_EN16931.xslt",
}
SAME_RULES = {"UBL-SR-47": "CII-SR-467", "CII-SR-467": "UBL-SR-47"}
"""Rules that say the same under the names of each syntax: all means of payment have one code."""
_FAILED = "{http://purl.oclc.org/dsdl/svrl}failed-assert"
_MILD = {"warning", "information"}
"""Factur-X marks these alone, CEN every rule."""
NO_RULES = "the business rules of EN 16931 are not there: run `make test`, which fetches them"


def have_rules() -> bool:
    return all(rules.is_file() for rules in _RULES.values()) and any(_FOLDER.glob("saxonche*"))


class BusinessRules:
    """Compiled once, which takes seconds; a document then takes milliseconds."""

    def __init__(self) -> None:
        if str(_FOLDER) not in sys.path:
            sys.path.append(str(_FOLDER))
        self._saxon: Any = importlib.import_module("saxonche").PySaxonProcessor(license=False)
        self._compiled: dict[Syntax, Any] = {}

    def broken(self, syntax: Syntax, xml: bytes) -> dict[str, str]:
        """The rules of the standard that a document breaks. Warnings do not count, nor what is Factur-X's own."""
        if syntax not in self._compiled:
            compiler = self._saxon.new_xslt30_processor()
            self._compiled[syntax] = compiler.compile_stylesheet(stylesheet_file=str(_RULES[syntax]))
        text = etree.tostring(etree.fromstring(xml), encoding="unicode")
        report = self._compiled[syntax].transform_to_string(xdm_node=self._saxon.parse_xml(xml_text=text))
        failed = etree.fromstring(report.encode()).iter(_FAILED)
        broken = {
            one.get("id", ""): "".join(map(str, one.itertext())).strip()
            for one in failed
            if one.get("flag") not in _MILD
        }
        return {rule: text for rule, text in broken.items() if not rule.startswith("FX-")}
