"""Findings in Indonesian, as an Indonesian bookkeeper says them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from waybill_documents.messages.indonesian_checks import CHECKS
from waybill_documents.messages.indonesian_faults import FAULTS
from waybill_documents.messages.parts import Names, Parts, listed

_TYPES = {
    "decimal": "bukan angka",
    "integer": "bukan bilangan bulat",
    "date": "bukan tanggal",
    "digits": "tidak mengandung angka",
}


def in_indonesian(finding: dict[str, Any], params: dict[str, Any], name: Names) -> str | None:
    """The sentence; None for what we cannot say."""
    parts = Parts(finding, params, name)
    kind = str(params.get("kind", ""))
    code = str(finding.get("code", ""))
    rule = str(finding.get("rule", ""))
    if rule == "xml.xsd" or rule == "xml":
        return parts.in_line("baris", _xml(parts, rule))
    if code == "check_failed":
        say = CHECKS.get("standard" if "standard" in params else kind)
        said = say(parts) if say else None
        return parts.in_line("baris", said) if said else None
    say = _KINDS.get(kind)
    if say is not None:
        return say(parts)
    return FAULTS.get(code)


def _missing(parts: Parts) -> str:
    what = parts.value_name()
    if "column" in parts.params:
        return parts.in_line("baris", f"{what} tidak ada")
    if "beside" in parts.params:
        page = parts.finding.get("page")
        return f"{what} tidak ditemukan: tidak ada isinya di samping “{parts['beside']}” di halaman {page}."
    if "labels" not in parts.params:
        return f"{what} tidak ditemukan."
    sought = listed(parts.params["labels"], "atau")
    where = [
        f"{word} “{parts[key]}”" for word, key in (("setelah", "after"), ("sebelum", "before")) if key in parts.params
    ]
    if where:
        return f"{what} tidak ditemukan: tidak ada tulisan {sought} {' dan '.join(where)}."
    return f"{what} tidak ditemukan: tidak ada halaman yang memuat tulisan {sought}."


def _unreadable(parts: Parts) -> str:
    wrong = _TYPES.get(parts["type"], "tidak dapat dibaca")
    example = f", contohnya {parts['example']}" if "example" in parts.params else ""
    return parts.in_line("baris", f"{parts.value_name()}: “{parts['raw']}” {wrong}{example}")


def _decimals(parts: Parts) -> str:
    most = parts.params.get("most")
    allowed = f"paling banyak {most} angka di belakang koma" if most else "tidak boleh ada angka di belakang koma"
    return parts.in_line("baris", f"{parts.value_name()}: “{parts['printed']}” terlalu rinci, {allowed}")


def _lookup(parts: Parts) -> str:
    return parts.in_line("baris", f"“{parts['text']}” tidak ada dalam daftar {parts.name(parts.rule)}")


def _more(parts: Parts) -> str:
    count, code = parts["count"], parts.finding.get("code")
    if code == "unread_line":
        return f"{count} baris lagi di tabel “{parts.name(parts['table'])}” tidak dapat dipahami"
    if code == "unknown_lookup":
        return f"{count} baris lagi tidak ada dalam daftar {parts.name(parts.rule)}"
    if "column" not in parts.params:
        return f"masih ada {count} angka lagi yang terlalu rinci"
    wrong = "tidak ada" if code == "field_missing" else "tidak dapat dibaca"
    return f"{parts.value_name()} {wrong} di {count} baris lagi"


def _table(parts: Parts) -> str:
    table = parts.name(parts["table"])
    return f"Tabel “{table}” tidak ditemukan: tidak ada halaman yang memuat judul kolom beserta baris-barisnya."


def _column(parts: Parts) -> str:
    header = parts["header"].replace("” or “", "” atau “")
    page = parts.finding.get("page")
    where = f" di halaman {page}" if page else ""
    return f"Tabel “{parts.name(parts['table'])}” tidak memiliki kolom “{header}”{where}."


def _unread(parts: Parts) -> str:
    line = parts.params.get("line")
    where = f"tulisan di bawah baris {line}" if line else "tulisan di atas baris pertama"
    return f"{where} di halaman {parts.finding.get('page')} tidak dapat dipahami: “{parts['text']}”"


def _xml(parts: Parts, rule: str) -> str:
    if "more" in parts.params:
        return f"dan {parts['more']} temuan serupa lainnya"
    element = parts["element"].rpartition("/")[2].rpartition(":")[2].partition("[")[0]
    if rule == "xml":
        return f"isi <{element}> tidak dapat ditulis sebagai XML"
    return f"isi <{element}> tidak sesuai dengan skema {parts['schema']}"


_KINDS: dict[str, Callable[[Parts], str]] = {
    "missing": _missing,
    "emptied": lambda parts: f"{parts.value_name()} wajib diisi.",
    "unreadable": _unreadable,
    "decimals": _decimals,
    "lookup": _lookup,
    "more": _more,
    "table": _table,
    "column": _column,
    "unread": _unread,
    "longer": lambda parts: parts.in_line("baris", f"{parts.value_name()}: teks terlalu panjang"),
    "characters": lambda parts: parts.in_line("baris", f"{parts.value_name()}: ada karakter yang tidak dapat ditulis"),
    "unknown": lambda parts: f"{parts['path']}: tidak ada nilai dengan nama ini di dokumen",
    "computed": lambda parts: f"{parts.value_name()} dihitung dari nilai lain; perbaiki nilai asalnya",
    "embedded": lambda parts: (
        f"{parts['path']}: isi faktur elektronik di dalam PDF berasal dari pengirimnya dan tidak dapat diperbaiki"
    ),
}
