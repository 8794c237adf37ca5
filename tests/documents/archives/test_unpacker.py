"""What is in a ZIP comes out as it was packed. Whatever else it claims or contains, it costs no more than allowed."""

from __future__ import annotations

import contextlib
import hashlib
import io
import random
import stat
import struct
import tempfile
import tracemalloc
import zipfile
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.zips import RawMember, many_tiny, raw_zip, with_list, zipped
from waybill.files import detect
from waybill_documents.archives import ArchiveLimits, LimitReached, Unpacker, ZipMember, ZipPlace
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage

MB = 2**20
TIGHT = ArchiveLimits(files=40, unpacked_bytes=4 * MB, file_bytes=2 * MB)


@dataclass
class Unpacked:
    """What came out of a ZIP."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    """The key of what is wrong, by path."""
    order: list[str] = field(default_factory=list)
    place: ZipPlace = field(default_factory=ZipPlace)

    def take(self, member: ZipMember) -> None:
        assert member.no == len(self.order)
        self.order.append(member.path)
        if member.fault is not None:
            self.faults[member.path] = str(member.fault.says.key)
            return
        assert member.content is not None
        content = member.content.file.read()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (member.content.size, member.content.sha256)
        self.files[member.path] = content


def unpacker(archive: bytes, limits: ArchiveLimits | None = None, **options: Any) -> Unpacker:
    return Unpacker(
        io.BytesIO(archive),
        limits or ArchiveLimits(),
        sniff=lambda file: detect(file).value,
        scratch=lambda: tempfile.TemporaryFile(),
        **options,
    )


def unpacked(archive: bytes, limits: ArchiveLimits | None = None) -> Unpacked:
    found, reader = Unpacked(), unpacker(archive, limits)
    for member in reader.members():
        found.take(member)
    found.place = reader.place
    return found


def refusal(archive: bytes, limits: ArchiveLimits | None = None) -> str:
    """The key of why the ZIP as a whole is refused."""
    with pytest.raises(DocumentRejected) as caught:
        unpacked(archive, limits)
    return str(caught.value.says.key)


def fault(member: RawMember) -> str:
    """The key of what is wrong with a member, which does not concern the one behind it."""
    found = unpacked(raw_zip([member, RawMember.of("good.txt", b"good")]))
    assert found.files == {"good.txt": b"good"}
    (key,) = found.faults.values()
    return key


# What usual programs pack


METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=12).filter(
    lambda name: not any(letter in name for letter in "/\\:") and ".." not in name
)


@given(
    st.dictionaries(NAMES, st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode() * 50)),
    st.sampled_from(METHODS),
    st.binary(max_size=20),
)
def test_what_zipfile_packs_is_what_we_unpack(members: dict[str, bytes], method: int, comment: bytes) -> None:
    members["last.txt"] = b"last"
    members = {name: content for name, content in members.items() if not content.startswith(b"PK")}
    assert unpacked(zipped(*members.items(), method=method, comment=comment)).files == members


@pytest.mark.parametrize("method", METHODS)
def test_a_large_file_goes_through_in_pieces(method: int) -> None:
    content = random.Random(1).randbytes(700_000) * 8
    assert unpacked(zipped(("large", content), method=method)).files == {"large": content}


def test_folders_are_no_members() -> None:
    archive = zipped(("a/", b""), ("a/b/", b""), ("a/b/c.txt", b"c"))
    assert unpacked(archive).files == {"a/b/c.txt": b"c"}


def test_a_file_that_was_written_as_a_stream_is_read() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", b"a" * 1000)
    assert unpacked(pipe.getvalue()).files == {"a.txt": b"a" * 1000}


def test_large_zips_with_numbers_of_64_bits_are_read() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("a.txt", "w", force_zip64=True) as file:
        file.write(b"a")
    assert unpacked(buffer.getvalue()).files == {"a.txt": b"a"}
    content = RawMember.of("b.txt", b"b")
    extra = struct.pack("<HHQQQ", 1, 24, 1, 1, 0)
    entry = bytearray(content.but(extra=extra, size=0xFFFFFFFF, packed_size=0xFFFFFFFF).listed(0xFFFFFFFF))
    assert unpacked(with_list(content.local, [bytes(entry)])).files == {"b.txt": b"b"}
    assert len(unpacked(many_tiny(70_000), ArchiveLimits(files=70_000)).order) == 70_000


def test_what_precedes_or_follows_a_zip_does_not_matter() -> None:
    archive = zipped(("a.txt", b"a"))
    assert unpacked(b"#!/bin/sh\nexec\n" + archive).files == {"a.txt": b"a"}
    assert unpacked(archive + b"\0" * 100).files == {"a.txt": b"a"}
    assert unpacked(zipped(("a.txt", b"a"), comment=b"PK\x05\x06 is no end")).files == {"a.txt": b"a"}


def test_files_of_the_same_name_are_all_taken() -> None:
    found = unpacked(raw_zip([RawMember.of("a", b"1"), RawMember.of("a", b"2")]))
    assert (found.order, found.files) == (["a", "a"], {"a": b"2"})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (b"CON", "CON"),
        (b"aux.txt", "aux.txt"),
        (b"a/NUL", "a/NUL"),
        ("rechnung-ä.txt".encode("cp437"), "rechnung-ä.txt"),
        ("faktur-ü-日本.txt".encode(), "faktur-ü-日本.txt"),
        (b"caf\xe9", "cafΘ"),
        (b"a..b", "a..b"),
        (b"a b/ c.", "a b/ c."),
        (b"./a", "./a"),
    ],
)
def test_odd_names_are_taken(name: bytes, path: str) -> None:
    assert unpacked(raw_zip([RawMember.of(name, b"x")])).files == {path: b"x"}


def test_a_name_that_says_it_is_utf_8_and_is_not_is_taken_too() -> None:
    assert unpacked(raw_zip([RawMember.of(b"a\xe9", b"x").but(flags=0x800)])).files == {"aΘ": b"x"}


# ZIPs in ZIPs


def test_zips_in_a_zip_are_unpacked_in_place() -> None:
    inner = zipped(("c.txt", b"c"), ("d/e.txt", b"e"))
    middle = zipped(("inner.zip", inner), ("b.txt", b"b"))
    found = unpacked(zipped(("a.txt", b"a"), ("x/middle.zip", middle), ("z.txt", b"z")))
    assert found.order == [
        *("a.txt", "x/middle.zip/inner.zip/c.txt", "x/middle.zip/inner.zip/d/e.txt", "x/middle.zip/b.txt", "z.txt"),
    ]
    assert not found.faults
    assert found.place.files == 5


def test_a_zip_that_lies_too_deep_fails_alone() -> None:
    archive = zipped(("a.txt", b"a"))
    for _ in range(3):
        archive = zipped(("n.zip", archive), ("t.txt", b"t"))
    found = unpacked(archive)
    assert found.faults == {"n.zip/n.zip/n.zip": "member.too_deep"}
    assert set(found.files) == {"t.txt", "n.zip/t.txt", "n.zip/n.zip/t.txt"}
    assert unpacked(zipped(("n.zip", archive)), ArchiveLimits(depth=0)).faults == {"n.zip": "member.too_deep"}


def test_a_zip_that_contains_itself_ends() -> None:
    """Like a quine, except for the effort of making one: at each depth there is another one."""
    archive = zipped(("r.zip", b""))
    for _ in range(50):
        archive = zipped(("r.zip", archive), method=zipfile.ZIP_STORED)
    found = unpacked(archive)
    assert found.faults == {"r.zip/r.zip/r.zip": "member.too_deep"}


@pytest.mark.parametrize(
    ("inner", "key"),
    [
        (zipped(("a", b"a"))[:-30], "archive.cut_off"),
        (zipped(), "archive.empty"),
        (raw_zip([RawMember.of("a", b"a").but(flags=1)]), "archive.encrypted"),
    ],
)
def test_a_nested_zip_that_cannot_be_read_fails_alone(inner: bytes, key: str) -> None:
    found = unpacked(zipped(("n.zip", inner), ("b.txt", b"b")))
    assert (found.faults, found.files) == ({"n.zip": key}, {"b.txt": b"b"})


@pytest.mark.parametrize(
    "document",
    [
        zipped(("mimetype", b"application/vnd.oasis.opendocument.text"), ("content.xml", b"<a/>"), method=0),
        zipped(("[Content_Types].xml", b"<a/>"), ("xl/workbook.bin", b"x")),
        zipped(("[Content_Types].xml", b"<a/>"), ("word/document.xml", b"<a/>")),
    ],
)
def test_documents_that_are_packed_like_zips_stay_whole(document: bytes) -> None:
    assert unpacked(zipped(("d", document))).files == {"d": document}


def test_an_office_document_is_no_zip_of_documents() -> None:
    document = zipped(("mimetype", b"application/vnd.oasis.opendocument.text"), ("content.xml", b"<a/>"), method=0)
    assert refusal(document) == "archive.document"


# A bad member fails alone


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (b"/etc/passwd", "absolute"),
        (b"C:/x", "absolute"),
        (b"c:x", "absolute"),
        (b"../x", "outside"),
        (b"a/../../x", "outside"),
        (b"a/..", "outside"),
        (b"..\\x", "backslash"),
        (b"a\\b", "backslash"),
        (b"a\0b", "unseen_characters"),
        (b"a\nb", "unseen_characters"),
        (b"a\x7fb", "unseen_characters"),
        ("a\u202egpj.exe".encode(), "unseen_characters"),
        (b"", "no_name"),
        (b"  ", "no_name"),
        (b"x" * 1001, "path_too_long"),
        (b"x" * 65_535, "path_too_long"),
        ("ä".encode() * 30_000, "path_too_long"),
    ],
)
def test_a_name_that_could_mean_another_place_is_refused(name: bytes, key: str) -> None:
    assert fault(RawMember.of(name, b"x")) == f"member.{key}"


def test_a_path_counts_with_those_of_the_zips_around_it() -> None:
    found = unpacked(zipped(("n" * 600, zipped(("m" * 398, b"1"), ("m" * 400, b"2")))))
    assert (set(found.files), list(found.faults.values())) == (
        {"n" * 600 + "/" + "m" * 398},
        ["member.path_too_long"],
    )
    assert all(len(path) <= 1000 for path in found.order)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_what_is_no_file_is_refused(kind: int) -> None:
    assert fault(RawMember.of("a", b"/etc/passwd").but(attributes=(kind | 0o777) << 16)) == "member.special"


PLAIN = RawMember.of("a.txt", b"text" * 100)
PACKED = RawMember.of("a.txt", b"text" * 100, method=8)
LZMA = b"\x09\x14\x05\x00\x5d"


@pytest.mark.parametrize(
    ("member", "key"),
    [
        (PLAIN.but(flags=1), "encrypted"),
        (PACKED.but(flags=1, method=99), "encrypted"),
        (PLAIN.but(method=9), "method"),
        (PLAIN.but(method=0xFFFF), "method"),
        (PLAIN.but(crc=1), "damaged"),
        (PACKED.but(crc=1), "damaged"),
        (PLAIN.but(size=399), "damaged"),
        (PLAIN.but(size=401), "damaged"),
        (PACKED.but(size=1), "damaged"),
        (PACKED.but(size=0), "damaged"),
        (PACKED.but(size=2**31), "too_large"),
        (PACKED.but(packed=b"\xff" * 50), "damaged"),
        (PACKED.but(packed=b""), "damaged"),
        (PACKED.but(packed_size=3), "damaged"),
        (PLAIN.but(packed_size=10_000), "overlaps"),
        (PLAIN.but(packed_size=2**32 - 2), "overlaps"),
        (PLAIN.but(method=12), "damaged"),
        (PLAIN.but(method=12, packed=b"BZh9" + b"\xff" * 50), "damaged"),
        (PLAIN.but(method=14), "method"),
        (PLAIN.but(method=14, packed=LZMA), "damaged"),
        (PLAIN.but(method=14, packed=LZMA + b"\xff\xff\xff\xff" + b"x" * 50), "method"),
        (PLAIN.but(method=14, packed=LZMA + b"\0\0\1\0" + b"x" * 50), "damaged"),
        (PLAIN.but(method=14, packed=b"\x09\x14\x05\x00\xff" + b"\0\0\1\0" + b"x" * 50), "method"),
    ],
)
def test_a_member_that_is_not_what_the_list_says_fails_alone(member: RawMember, key: str) -> None:
    assert fault(member) == f"member.{key}"


def test_a_list_that_points_elsewhere_fails_members_alone() -> None:
    good = RawMember.of("good", b"good")
    for offset in (3, len(good.local) + 5, 2**32 - 2):
        found = unpacked(with_list(good.local, [good.listed(0), PLAIN.listed(offset)]))
        assert list(found.faults.values())[-1] in ("member.damaged", "member.overlaps")
    header_elsewhere = RawMember.of("x", good.local)
    found = unpacked(with_list(header_elsewhere.local, [good.listed(31)]))
    assert found.files == {"good": b"good"}  # hidden in another one that is not listed, which harms nobody


def test_members_that_share_bytes_are_refused() -> None:
    content = RawMember.of("a", bytes(1000), method=8)
    same = with_list(content.local, [content.but(name=f"{no}".encode()).listed(0) for no in range(10)])
    assert set(unpacked(same).faults.values()) == {"member.overlaps"}
    kernel = RawMember.of("kernel", bytes(5000), method=8).local
    quoting = RawMember.of("quoting", kernel)
    listed = [quoting.listed(0), RawMember.of("kernel", bytes(5000), method=8).listed(len(quoting.local) - len(kernel))]
    found = unpacked(with_list(quoting.local, listed))
    assert (found.faults, list(found.files)) == ({"quoting": "member.overlaps"}, ["kernel"])


# Bombs


def test_a_file_that_unpacks_too_far_fails_alone() -> None:
    found = unpacked(zipped(("bomb", bytes(30 * MB)), ("blank", b" " * 500_000), ("good.txt", b"good")))
    assert found.faults == {"bomb": "member.unpacks_too_far"}
    assert set(found.files) == {"blank", "good.txt"}
    assert found.place.unpacked < 10 * MB


def test_a_file_that_hides_its_size_is_stopped_at_the_limit() -> None:
    member = RawMember.of("a", bytes(30 * MB), method=8).but(size=10, crc=0)
    assert fault(member) == "member.unpacks_too_far"
    noise = random.Random(1).randbytes(3 * MB)
    found = unpacked(raw_zip([RawMember.of("a", noise, method=8).but(size=10)]), TIGHT)
    assert found.faults == {"a": "member.too_large"}
    assert found.place.unpacked < 3 * MB


def test_the_zip_is_refused_where_all_its_files_together_exceed_the_limit() -> None:
    noise = random.Random(1).randbytes(MB)
    reader = unpacker(zipped(*((f"{no}", noise) for no in range(10))), TIGHT)
    found = Unpacked()
    with pytest.raises(LimitReached) as caught:
        for member in reader.members():
            found.take(member)
    assert caught.value.says.key == "archive.too_large"
    assert len(found.files) == 4
    assert reader.place.unpacked <= TIGHT.unpacked_bytes + MB


def test_what_nested_zips_and_failing_files_unpack_to_counts() -> None:
    noise = random.Random(1).randbytes(MB)
    nested = zipped(*((f"{no}", noise) for no in range(2)))
    assert refusal(zipped(("n.zip", nested), ("m", noise)), ArchiveLimits(unpacked_bytes=4 * MB)) == "archive.too_large"
    failing = [RawMember.of(f"{no}", noise).but(crc=0) for no in range(5)]
    assert refusal(raw_zip(failing), TIGHT) == "archive.too_large"


def test_a_million_tiny_entries_are_refused_before_they_cost_memory() -> None:
    archive = many_tiny(1_000_000)
    tracemalloc.start()
    try:
        assert refusal(archive) == "archive.too_many_files"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - len(archive) < 32 * MB


def test_files_in_nested_zips_count() -> None:
    nested = zipped(*((f"{no}", b"") for no in range(20)))
    assert refusal(zipped(("1.zip", nested), ("2.zip", nested), ("3", b"")), TIGHT) == "archive.too_many_files"
    assert len(unpacked(zipped(("1.zip", nested), ("2.zip", nested)), TIGHT).order) == 40


def test_very_many_folders_are_refused() -> None:
    assert refusal(raw_zip([RawMember.of(f"{no}/", b"") for no in range(1000)]), TIGHT) == "archive.too_many_files"


def test_one_long_name_after_the_other_costs_no_memory() -> None:
    archive = raw_zip([RawMember.of(b"x" * 65_000, b"") for _ in range(400)])
    tracemalloc.start()
    try:
        assert set(unpacked(archive).faults.values()) == {"member.path_too_long"}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - len(archive) < 8 * MB


def test_a_bomb_behind_each_method_is_stopped() -> None:
    for method in METHODS[1:]:
        found = unpacked(zipped(("bomb", bytes(55 * MB)), method=method))
        assert found.faults == {"bomb": "member.too_large"} or found.faults == {"bomb": "member.unpacks_too_far"}
        assert found.place.unpacked < 51 * MB


# ZIPs that are none


@pytest.mark.parametrize(
    ("archive", "key"),
    [
        (b"", "no_zip"),
        (b"text", "no_zip"),
        (b"PK", "no_zip"),
        (b"PK\x03\x04" + bytes(100), "cut_off"),
        (b"PK\x07\x08PK\x03\x04" + bytes(100), "split"),
        (zipped(), "empty"),
        (zipped(("a/", b"")), "empty"),
        (raw_zip([RawMember.of("a", b"a").but(flags=1), RawMember.of("b/", b"")]), "encrypted"),
        (struct.pack("<4s4H2LH", b"PK\x05\x06", 1, 1, 1, 1, 0, 0, 0), "split"),
        (struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 100, 0, 0), "damaged"),
        (struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 0, 100, 0), "damaged"),
        (bytes(50) + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 50, 0, 0), "damaged"),
        (with_list(b"", [RawMember.of("a" * 50, b"").listed(0)[:-1]]), "damaged"),
    ],
)
def test_what_is_no_zip_is_refused_as_a_whole(archive: bytes, key: str) -> None:
    assert refusal(archive) == f"archive.{key}"


def test_a_zip_that_was_cut_off_anywhere_is_refused() -> None:
    whole = zipped(("a.txt", b"a" * 50), ("b.txt", b"b"), comment=b"comment")
    for length in range(len(whole) - len(b"comment")):
        assert refusal(whole[:length]).startswith("archive.")
    for length in range(len(whole) - len(b"comment"), len(whole)):
        with contextlib.suppress(DocumentRejected):
            assert unpacked(whole[:length]).files == {"a.txt": b"a" * 50, "b.txt": b"b"}


# Anything


def harmless(archive: bytes) -> None:
    """Unpack it. Whatever it is, nothing but a refusal may come of it, and no more bytes than are allowed."""
    try:
        found = unpacked(archive, TIGHT)
    except DocumentRejected:
        return
    assert sum(map(len, found.files.values())) <= TIGHT.unpacked_bytes
    assert len(found.order) <= TIGHT.files
    assert all(len(path) <= 1000 and ".." not in path.split("/") for path in found.files)


@given(st.binary(max_size=400))
def test_random_bytes_do_no_harm(data: bytes) -> None:
    harmless(data)


SEED = zipped(
    ("a.txt", b"text" * 20), ("n.zip", zipped(("b", b"inner"), ("c", bytes(2000)))), ("d", b"d"), comment=b"comment"
)


@given(st.lists(st.tuples(st.integers(0, len(SEED) - 1), st.integers(0, 255)), min_size=1, max_size=6))
@settings(max_examples=400)
def test_a_zip_with_some_bytes_changed_does_no_harm(changes: list[tuple[int, int]]) -> None:
    mutated = bytearray(SEED)
    for at, value in changes:
        mutated[at] = value
    harmless(bytes(mutated))


@given(st.lists(st.sampled_from((PLAIN, PACKED)), min_size=1, max_size=5), st.data())
def test_a_list_with_any_numbers_does_no_harm(members: list[RawMember], data: st.DataObject) -> None:
    number = st.integers(0, 0xFFFFFFFF) | st.integers(0, 600)
    lies = [
        member.but(
            size=data.draw(number), packed_size=data.draw(number), method=data.draw(st.sampled_from((0, 8, 9, 12, 14)))
        )
        for member in members
    ]
    body = b"".join(member.local for member in members)
    harmless(with_list(body, [lie.listed(data.draw(number)) for lie in lies]))


# Going on elsewhere


TREE = zipped(
    ("a.txt", b"a"),
    ("f/", b""),
    ("n.zip", zipped(("1", b"1"), ("m.zip", zipped(("x", b"x"), ("../y", b"y"), ("z", b"z"))), ("2", b"2"))),
    ("bad", b""),
    ("e.txt", b"e"),
)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12))
def test_unpacking_can_stop_after_any_member_and_go_on_elsewhere(steps: list[int]) -> None:
    whole, found, place = unpacked(TREE), Unpacked(), None
    for step in [*steps, 100]:
        reader = unpacker(TREE, start=place)
        for count, member in enumerate(reader.members(), start=1):
            found.take(member)
            if count == step:
                break
        place = ZipPlace.from_json(reader.place.to_json())
    assert (found.order, found.files, found.faults) == (whole.order, whole.files, whole.faults)
    assert place == whole.place


def test_a_member_that_killed_its_parser_is_passed_over_and_blamed() -> None:
    for skipped in range(len(unpacked(TREE).order)):
        begun: list[ZipPlace] = []
        expected = unpacked(TREE)
        for member in unpacker(TREE).members(begun.append):
            if member.no == skipped:
                break
        died_at = begun[-1]
        crashed = DocumentRejected(FaultCode.PARSER_CRASHED, DocumentMessage("parser.crashed"))
        members = list(unpacker(TREE, start=died_at, blame=crashed).members())
        assert [member.path for member in members] == expected.order[skipped:]
        assert members[0].fault is crashed
        assert crashed not in [member.fault for member in members[1:]]


def test_a_nested_zip_that_killed_its_parser_is_passed_over_as_a_whole() -> None:
    crashed = DocumentRejected(FaultCode.PARSER_CRASHED, DocumentMessage("parser.crashed"))
    members = list(unpacker(TREE, start=ZipPlace((2,), 1, 7, 1), blame=crashed).members())
    assert [member.path for member in members] == ["n.zip", "bad", "e.txt"]
