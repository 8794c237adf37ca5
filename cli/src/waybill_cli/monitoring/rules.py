"""The alert rules, as a text: `alerts.yaml` beside this module."""

from __future__ import annotations

from importlib.resources import files

_RUNBOOK = "runbook_url: docs/runbook.md#"


def rules_text(*, docs: str = "docs") -> str:
    """The rule file. `docs` is the folder or the address in which its links find `runbook.md`."""
    text = (files("waybill_cli.monitoring") / "alerts.yaml").read_text(encoding="utf-8")
    return text.replace(_RUNBOOK, f"runbook_url: {docs.rstrip('/')}/runbook.md#")
