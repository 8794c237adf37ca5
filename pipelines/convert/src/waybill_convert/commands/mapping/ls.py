"""`waybill mapping ls`: lists the shipped mappings, or with a key all that a tenant has."""

from __future__ import annotations

from typing import Any

from waybill.console.api_connection import DEFAULT_URL, Key, Url, connected
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, styled
from waybill_documents.catalogue import names
from waybill_documents.mapping.loader import LoadedMapping, shipped


def ls(url: Url = DEFAULT_URL, key: Key = "", as_json: AsJson = False) -> None:
    """List the shipped mappings; with an API key all that your tenant can use, and its drafts and retired ones."""
    if key:
        with connected("mapping ls", url, key) as api:
            _print_known(api.call("GET", "/api/mappings"), as_json=as_json)
        return
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


def _print_known(known: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(known)
        return
    hidden = [each for each in known["own"] if each["state"] != "published"]
    rows = [(each["name"], each["origin"], each["sha256"], each["title"]) for each in known["choices"]]
    rows += [(each["name"], each["state"], each["sha256"], each["title"]) for each in hidden]
    print_table(
        [Column("NAME"), Column("KIND"), Column("SHA-256"), Column("TITLE", least=16, wraps=True)],
        [(styled(name), styled(kind), styled(sha256[:8], "dim"), styled(title)) for name, kind, sha256, title in rows],
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
