"""Describes a mapping's rules in words, for people who do not read JSON."""

from __future__ import annotations

from waybill_documents.mapping.model import ColumnRule, FieldRule

_WHERE = {"right": "right of", "below": "below", "block": "at and below"}


def described(rule: FieldRule) -> str:
    """How a field is found."""
    if rule.constant is not None:
        return f"always “{rule.constant}”"
    parts = [", ".join([*_kind(rule), _found(rule)])]
    if rule.after:
        parts.append(f"after “{rule.after}”")
    if rule.before:
        parts.append(f"before “{rule.before}”")
    if rule.sheet is not None:
        parts.append(f"on the sheet {rule.sheet}" if isinstance(rule.sheet, int) else f"on the sheet “{rule.sheet}”")
    if rule.cells and (rule.label or rule.pattern):
        parts.append(f"in {rule.cells}")
    if rule.page != "any":
        parts.append(f"on the {rule.page} page")
    if rule.required:
        parts.append("required")
    elif rule.default is not None:
        parts.append(f"otherwise {rule.default}")
    return ", ".join(parts)


def _kind(rule: FieldRule | ColumnRule) -> list[str]:
    if rule.type == "text":
        return []
    if rule.decimals is None:
        return [rule.type]
    digits = {0: "no digit", 1: "at most 1 digit"}.get(rule.decimals, f"at most {rule.decimals} digits")
    return [f"{rule.type} with {digits} after its sign"]


def _found(rule: FieldRule) -> str:
    lines = "" if rule.lines == "1" else f", line{'s' if '-' in rule.lines else ''} {rule.lines}"
    wraps = ", also across lines" if rule.wraps else ""
    picked = f", what matches /{rule.pattern}/{wraps}" if rule.pattern else ""
    if rule.label:
        labels = " or ".join(f"“{label}”" for label in rule.label)
        return f"{_WHERE[rule.direction]} {labels}{lines}{picked}"
    if rule.pattern:
        return f"what matches /{rule.pattern}/{wraps}"
    if rule.cells:
        return f"what stands in {rule.cells}{lines}"
    area = rule.area
    return f"what stands in {area.left}–{area.right} % across, {area.top}–{area.bottom} % down{lines}" if area else ""


def described_column(rule: ColumnRule) -> str:
    """How a column is found."""
    parts = _kind(rule)
    if rule.header:
        parts.append(f"under {' or '.join(f'“{header}”' for header in rule.header)}")
    if rule.after or rule.before:
        parts.append(f"right of {rule.after}" if rule.after else f"left of {rule.before}")
    if rule.pattern:
        parts.append(f"what matches /{rule.pattern}/")
    if rule.required:
        parts.append("required")
    if rule.optional:
        parts.append("the column may be missing")
    if rule.default is not None:
        parts.append(f"otherwise {rule.default}")
    return ", ".join(parts) or "text"
