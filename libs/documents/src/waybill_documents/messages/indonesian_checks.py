"""Why a check does not hold, in Indonesian: the sentences of `explaining.py` and of the embedded invoices' checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from waybill_documents.messages.parts import Parts

_SHOULD = {
    "==": "seharusnya",
    "!=": "seharusnya bukan",
    "<": "seharusnya kurang dari",
    "<=": "seharusnya tidak lebih dari",
    ">": "seharusnya lebih dari",
    ">=": "seharusnya tidak kurang dari",
}
_OF_A_COLUMN = re.compile(r"the (sum of|number of|first|last|smallest|largest) ([a-z][a-z0-9 ]*[a-z0-9]|[a-z])")
_COLUMNS = {
    "sum of": "jumlah {}",
    "number of": "banyaknya {}",
    "first": "{} pertama",
    "last": "{} terakhir",
    "smallest": "{} terkecil",
    "largest": "{} terbesar",
}
_STANDARD = {
    "BR-CO-10": "jumlah semua baris adalah {}",
    "BR-CO-11": "jumlah potongan adalah {}",
    "BR-CO-12": "jumlah biaya tambahan adalah {}",
    "BR-CO-13": "jumlah baris dikurangi potongan ditambah biaya tambahan adalah {}",
    "BR-CO-14": "jumlah pajak per tarif adalah {}",
    "BR-CO-15": "nilai bersih ditambah pajak adalah {}",
    "BR-CO-16": "nilai total dikurangi yang sudah dibayar adalah {}",
}


def _calculation(parts: Parts) -> str:
    side = _side(_formula(parts, parts["formula"]), parts["result"])
    return f"{side}, di faktur tertulis {parts.called(parts['name'])} {parts['printed']}"


def _comparison(parts: Parts) -> str:
    sides = parts.params.get("sides")
    if not isinstance(sides, list) or len(sides) != 2:
        return f"{parts['left']} tidak sesuai dengan {parts['right']}"
    left, right = (None if side is None else _formula(parts, str(side)) for side in sides)
    operator = parts["operator"]
    if left is None:
        return f"{_side(right or '', parts['right'])}, tidak sesuai dengan {parts['left']}"
    if operator != "==" or right is None:
        wanted = f"{right}, yaitu {parts['right']}" if right else parts["right"]
        return f"{_side(left, parts['left'])}, {_SHOULD.get(operator, 'seharusnya')} {wanted}"
    return f"{_side(left, parts['left'])}, tetapi {_side(right, parts['right'])}"


def _side(called: str, value: str) -> str:
    if not value:
        return f"{called or 'salah satu nilai'} tidak ada isinya"
    return f"{called} adalah {value}" if called != value else f"nilainya {value}"


def _formula(parts: Parts, formula: str) -> str:
    """A name, or a calculation whose only words are those for a whole column."""
    if re.fullmatch(r"[a-z][a-z0-9 ]*", formula) and not _OF_A_COLUMN.fullmatch(formula):
        return parts.called(formula)
    return _OF_A_COLUMN.sub(lambda match: _COLUMNS[match[1]].format(parts.called(match[2])), formula)


def _missing(parts: Parts) -> str:
    labels = parts.params.get("missing")
    names = [parts.called(str(label)) for label in labels] if isinstance(labels, list) else []
    return f"{' dan '.join(names) or 'nilai yang diperiksa'} tidak ada"


def _gap(parts: Parts) -> str:
    after, found = parts["after"], parts["found"]
    here = _number(found)
    if here is None:
        return f"“{found}” bukan nomor urut"
    if after == "0":
        return f"nomor urut dimulai dari {found}, bukan dari 1"
    if here > (_number(after) or 0):
        return f"nomor urut melompat dari {after} ke {found}"
    return f"nomor urut mundur dari {after} ke {found}"


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _repeated(parts: Parts) -> str:
    column = parts.name(parts.path)
    return f"{column} {parts['value']} sudah ada di baris {parts['first']}"


def _carried(parts: Parts) -> str:
    page, carried = parts["page"], parts["carried"]
    if not carried:
        return f"halaman {page} tidak mencantumkan jumlah pindahan, padahal tabelnya berlanjut"
    if "sum" in parts.params:
        so_far = parts["sum"] or "tidak dapat dihitung"
        return f"halaman {page} memindahkan {carried}, sedangkan jumlah baris sampai di situ {so_far}"
    if "out" in parts.params:
        out, before = parts["out"], parts["out_page"]
        return f"halaman {page} menerima pindahan {carried}, padahal halaman {before} memindahkan {out}"
    return f"halaman {page} menerima pindahan {carried}, padahal tidak ada halaman sebelumnya yang memindahkan jumlah"


def _more(parts: Parts) -> str:
    return f"{parts.name(parts.rule)}: masih ada {parts['count']} temuan serupa"


def _other(parts: Parts) -> str:
    expression = f": {parts['expression']}" if "expression" in parts.params else ""
    return f"{parts.name(parts.rule)} tidak terpenuhi{expression}"


def _standard(parts: Parts) -> str:
    said = _STANDARD.get(parts["standard"], "hasil perhitungan adalah {}").format(parts["right"])
    return f"{said}, di faktur tertulis {parts['left']}"


CHECKS: dict[str, Callable[[Parts], str]] = {
    "calculation": _calculation,
    "sum": _calculation,
    "comparison": _comparison,
    "missing": _missing,
    "gap": _gap,
    "repeated": _repeated,
    "carried": _carried,
    "more": _more,
    "other": _other,
    "standard": _standard,
}
"""By the finding's kind."""
