"""Random rule packages that are well typed, facts for them, and random damage to sources."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

UNITS = ["kg", "g", "kWh", "Wh", "gCO2e", "kgCO2e", "gCO2e_per_kWh", "pct", "each"]
SCALARS = ["Bool", "Int", "Text", "Date", "Dec(2)", "Dec(6)", "Qty(kg)", "Qty(gCO2e)", "Qty(kWh)", "Qty(pct)"]
TYPES = [*SCALARS, "Opt(Int)", "Opt(Qty(kg))", "List(Int)", "List(Dec(2))", "List(Qty(kg))", "List(Text)"]
TYPES += ["Map(Text, Int)", "Record(a: Int, b: Dec(2))", "List(Record(a: Int, b: Dec(2)))"]
KEYS = ["a", "b", "mass", "name", "n"]


class Program:
    """Writes one package. It never writes what the type checker should refuse."""

    def __init__(self, seed: int, depth: int = 4) -> None:
        self.rnd = random.Random(seed)
        self.depth = depth
        self.fields: dict[str, str] = {}
        self.names: list[tuple[str, str]] = []
        self.count = 0

    def source(self) -> str:
        parts = []
        for number in range(self.rnd.randint(1, 5)):
            path = self.rnd.choice(["a", "b.c", "b.d", "z", "m"]) + f".f{number}"
            of = self.rnd.choice(TYPES)
            parts.append(f"field {path}: {of} = {self.term(of, self.depth)};")
            self.fields[path] = of
            self.names.clear()
        self.rnd.shuffle(parts)
        return "\n".join(parts)

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def scoped(self, names: list[tuple[str, str]], write: Callable[[], str]) -> str:
        before = len(self.names)
        self.names += names
        text = write()
        del self.names[before:]
        return text

    def term(self, of: str, depth: int) -> str:
        if depth <= 0:
            return self.leaf(of)
        choice = self.rnd.randrange(9)
        if choice == 0:
            return (
                f"(if {self.term('Bool', depth - 1)} then {self.term(of, depth - 1)} else {self.term(of, depth - 1)})"
            )
        if choice == 1:
            name, other = self.fresh(), self.rnd.choice(TYPES)
            value = self.term(other, depth - 1)
            return f"(let {name} = {value}; {self.scoped([(name, other)], lambda: self.term(of, depth - 1))})"
        if choice == 2 and self.rnd.random() < 0.3:
            return f'(assert({self.term("Bool", depth - 1)}, "A1", "no"); {self.term(of, depth - 1)})'
        if choice == 3:
            return (
                f"unwrapOr({self.optional(of, depth)}, {self.term(of, depth - 1)})" if self.plain(of) else self.leaf(of)
            )
        if choice == 4:
            return self.leaf(of)
        if choice == 5 and self.plain(of):
            items, (a, b) = self.rnd.choice(["Int", "Text", "Dec(2)"]), (self.fresh(), self.fresh())
            step = self.scoped([(a, of), (b, items)], lambda: self.term(of, depth - 2))
            return f"fold({self.term(f'List({items})', depth - 1)}, {self.term(of, depth - 1)}, ({a}, {b}) -> {step})"
        return self.special(of, depth - 1)

    def plain(self, of: str) -> bool:
        return not of.startswith("Opt")

    def optional(self, of: str, depth: int) -> str:
        record = (
            'unwrapOr(getFact("T", "k:1"), unwrapOr(getFact("T", "k:2"), requireSome(getFact("T", "k:3"), "M", "m")))'
        )
        reads = f'recordGet({record}, "{self.rnd.choice(KEYS)}", {of})'
        return self.rnd.choice([reads, f"none({of})", f"some({self.term(of, depth - 2)})"])

    def leaf(self, of: str) -> str:
        known = [name for name, each in self.names if each == of]
        known += [f'field("{path}")' for path, each in self.fields.items() if each == of]
        if known and self.rnd.random() < 0.6:
            return self.rnd.choice(known)
        r = self.rnd
        if of.startswith("Opt"):
            return r.choice([f"none({of[4:-1]})", f"some({self.leaf(of[4:-1])})"])
        if of.startswith("List"):
            inner = of[5:-1]
            return r.choice([f"emptyList({inner})", f"[{', '.join(self.leaf(inner) for _ in range(r.randint(1, 3)))}]"])
        if of.startswith("Map"):
            return r.choice(["emptyMap(Int)", '{"x": 1, "b": -2}'])
        if of.startswith("Record"):
            return f"{{a: {self.leaf('Int')}, b: {self.leaf('Dec(2)')}}}"
        if of.startswith("Qty"):
            return f'toQty("{of[4:-1]}", {r.choice(["0", "1.5", "-3.000001", "99999999999999999999999999999.0"])})'
        if of.startswith("Dec"):
            places = int(of[4:-1])
            return (
                r.choice(["-", ""])
                + f"{r.choice([0, 1, 7, 10 ** r.randint(0, 30)])}."
                + "".join(r.choice("0159") for _ in range(places))
            )
        return {
            "Bool": lambda: r.choice(["true", "false"]),
            "Int": lambda: str(r.choice([0, 1, -1, 42, 2**53 - 1])),
            "Text": lambda: r.choice(['""', '"a"', '"é\\n\\"漢"', '"long text that is long"']),
            "Date": lambda: r.choice(['date("2027-02-18")', 'date("0001-01-01")']),
        }[of]()

    def special(self, of: str, depth: int) -> str:
        r = self.rnd

        def term(each: str) -> str:
            return self.term(each, depth)

        if of == "Bool":
            other = r.choice(SCALARS)
            sign = r.choice(["==", "!="] + ([] if other == "Bool" else ["<", "<=", ">", ">="]))
            return r.choice(
                [
                    f"({term(other)} {sign} {term(other)})",
                    f"({term('Bool')} {r.choice(['&&', '||'])} {term('Bool')})",
                    f"!{self.leaf('Bool')}",
                    f"isSome({term('Opt(Int)')})",
                    f"({term('List(Int)')} == {term('List(Int)')})",
                    f'emitCompliance({self.leaf("Text")}, "PASS", {self.leaf("Text")})',
                ]
            )
        if of == "Int":
            a, b = term("Int"), term("Int")
            return r.choice(
                [
                    f"({a} {r.choice('+-*')} {b})",
                    f"- {self.leaf('Int')}",
                    f"length({term('List(Text)')})",
                    f"{term('Record(a: Int, b: Dec(2))')}.a",
                    f'unwrapOr(mapGet({term("Map(Text, Int)")}, "x"), {a})',
                ]
            )
        if of == "Text":
            return r.choice([f"({term('Text')} + {term('Text')})", f"toText({term(r.choice(SCALARS))})"])
        if of.startswith("Dec"):
            scale = of[4:-1]
            same = [f"({term(of)} {r.choice('+-')} {term(of)})", f"({term(of)} {r.choice('*/')} {term('Int')})"]
            same += [f"toDec({scale}, {term(r.choice(['Int', 'Dec(2)', 'Dec(6)', 'Qty(kg)']))})"]
            same += [f"({term(of)} {r.choice('*/')} {term(of)})", f"sumDec({scale}, {term('List(Dec(2))')})"]
            if of == "Dec(6)":
                same += [f"({term('Qty(kg)')} / {term('Qty(kg)')})", f"({term('Dec(2)')} * {term('Dec(6)')})"]
            return r.choice(same)
        if of.startswith("Qty"):
            ways = [f"({term(of)} {r.choice('+-')} {term(of)})", f"({term(of)} {r.choice('*/')} {term('Dec(2)')})"]
            ways += [f"({term(of)} * {term('Qty(pct)')})", f'toQty("{of[4:-1]}", {term("Dec(6)")})']
            if of == "Qty(kg)":
                ways += [
                    f'sumQty("kg", {term("List(Qty(kg))")})',
                    f'convert("g", "kg", convert("kg", "g", {term(of)}))',
                ]
            if of == "Qty(gCO2e)":
                ways += [f"(({term(of)} / {term('Qty(kWh)')}) * {term('Qty(kWh)')})"]
            return r.choice(ways)
        if of.startswith("List"):
            inner, name, other = of[5:-1], self.fresh(), r.choice(["Int", "Text"])
            mapped = self.scoped([(name, other)], lambda: self.term(inner, depth - 1))
            kept = self.scoped([(name, inner)], lambda: self.term("Bool", depth - 1))
            ways = [f"map({self.term(f'List({other})', depth - 1)}, {name} -> {mapped})"]
            ways += [f"filter({term(of)}, {name} -> {kept})"]
            if of == "List(Text)":
                ways.append(f"mapKeys({term('Map(Text, Int)')})")
            if of == "List(Int)":
                row = 'getFactsByPrefix("T", "k:")'
                ways.append(f'map({row}, {name} -> unwrapOr(recordGet({name}, "{r.choice(KEYS)}", Int), 3))')
            return r.choice(ways)
        if of == "Date":
            return f"(if {term('Bool')} then {self.leaf('Date')} else {self.leaf('Date')})"
        return self.leaf(of)


def payloads(rnd: random.Random) -> dict[tuple[str, str], Any]:
    """Facts, some of which are not what rules expect."""
    values = [0, 5, -7, Decimal("1.25"), Decimal("1E+40"), "12.5", "x", None, True, [1, 2], {"value": 2, "unit": "g"}]
    values += ["", "2027-02-18", Decimal("-0.005"), {"value": "7", "unit": "unit:kilogram"}, 2**53, 10**70, 1.5, b"no"]
    facts: dict[tuple[str, str], Any] = {}
    for number in range(1, 4):
        if rnd.random() < 0.8:
            odd = rnd.random() < 0.1
            facts["T", f"k:{number}"] = {key: rnd.choice(values if odd else values[:-3]) for key in KEYS}
    return facts


_LANGUAGE = (
    "field example property let assert if then else true false forall assume fact expect fails emits from to cases",
    "Bool Int Text Date Dec Qty Opt List Map Record kg g getFact recordGet some none map fold a b.c x 0 1 2.50 null",
    """-> || && == != <= >= - + * / ! < > = ( ) { } [ ] , ; : . -- " ' \\ "t" "a.b" cases(2) seed(1)""",
)
WORDS = [word for line in _LANGUAGE for word in line.split()] + ["\n"]


def soup(rnd: random.Random) -> str:
    return " ".join(rnd.choice(WORDS) for _ in range(rnd.randint(0, 60)))


def damaged(source: str, rnd: random.Random) -> str:
    """The source after some accidents."""
    for _ in range(rnd.randint(1, 4)):
        at, length = rnd.randrange(len(source) + 1), rnd.choice([0, 1, 1, 3, 20])
        put = rnd.choice(
            ["", rnd.choice(WORDS), chr(rnd.choice([0, 9, 34, 92, 0xD800, 0x1F600, rnd.randrange(0x250)]))]
        )
        source = source[:at] + put + source[at + length :]
        if rnd.random() < 0.3 and source:
            a, b = sorted((rnd.randrange(len(source)), rnd.randrange(len(source))))
            source = source[:b] + source[a : a + 40] + source[b:]
    return source
