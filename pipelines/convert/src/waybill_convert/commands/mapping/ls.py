"""`waybill mapping ls`: lists the shipped mappings."""

from __future__ import annotations

from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, styled
from waybill_documents.catalogue import names
from waybill_documents.mapping.loader import LoadedMapping, shipped


def ls(as_json: AsJson = False) -> None:
    """List the shipped mappings."""
    found = [loaded for name in names() if (loaded := shipped(name))]
    if as_json:
        print_json([_record(loaded) for loaded in found])
        return
    print_table(
        [Column("NAME"), Column("SHA-256"), Column("TITLE", least=16, wraps=True)],
        [
            (styled(loaded.mapping.name), styled(loaded.sha256[:8], "dim"), styled(loaded.mapping.title))
            for loaded in found
        ],
    )


def _record(loaded: LoadedMapping) -> dict[str, object]:
    mapping = loaded.mapping
    return {
        "name": mapping.name,
        "title": mapping.title,
        "sha256": loaded.sha256,
        "fields": [*mapping.fields, *mapping.computed],
        "tables": list(mapping.tables),
        "checks": list(mapping.checks),
        "xml": mapping.xml is not None or mapping.embedded is not None,
    }
