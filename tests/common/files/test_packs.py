"""A pack gives back what was written, however it is cut on the way, and never more than its reader allows."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waybill.files.packs import (
    LONGEST_HEADER,
    BadPack,
    CutOff,
    PackDecoder,
    PackReader,
    PackWriter,
    end_frame,
    frame,
    frames,
)

HEADERS = st.dictionaries(st.text(max_size=8).filter(lambda name: name not in ("bytes", "end")), st.text(max_size=20))
CONTENTS = st.lists(st.tuples(HEADERS, st.binary(max_size=200)), max_size=8)
MOST = 1000


def packed(contents: list[tuple[dict[str, Any], bytes]]) -> bytes:
    return b"".join(frame(header, content) for header, content in contents) + end_frame()


def raw(header: bytes, content: bytes = b"") -> bytes:
    return len(header).to_bytes(4, "big") + header + content


def decoded(data: bytes, most: int = MOST) -> list[tuple[dict[str, Any], bytes]]:
    return list(PackReader(io.BytesIO(data), most_bytes=most))


async def received(data: bytes, size: int) -> list[tuple[dict[str, Any], bytes]]:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(data), size):
            yield data[at : at + size]

    return [each async for each in frames(chunks(), most_bytes=MOST)]


@given(CONTENTS, st.integers(1, 300))
@example([({}, b"")], 1)
async def test_what_was_written_is_read_in_chunks_of_any_size(
    contents: list[tuple[dict[str, Any], bytes]], size: int
) -> None:
    expected = [({**header, "bytes": len(content)}, content) for header, content in contents]
    expected.append(({"end": True, "bytes": 0}, b""))
    assert await received(packed(contents), size) == expected
    assert decoded(packed(contents)) == expected


def test_a_writer_says_where_each_content_is() -> None:
    file = io.BytesIO()
    writer = PackWriter(file)
    places = [(writer.write({"no": no}, content), content) for no, content in enumerate((b"first", b"", b"third"))]
    writer.end({"files": 3})
    whole = file.getvalue()
    assert [whole[at : at + len(content)] for at, content in places] == [b"first", b"", b"third"]
    assert writer.size == len(whole)
    assert decoded(whole)[-1] == ({"end": True, "files": 3, "bytes": 0}, b"")


def test_half_a_surrogate_pair_in_a_name_can_be_written() -> None:
    ((header, _), _) = decoded(frame({"path": "a\udcff"}) + end_frame())
    assert header["path"] == "a\udcff"


@given(CONTENTS, st.data())
def test_a_pack_that_was_cut_off_anywhere_is_not_taken_for_a_whole_one(
    contents: list[tuple[dict[str, Any], bytes]], data: st.DataObject
) -> None:
    whole = packed(contents)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CutOff):
        decoded(whole[:cut])


@given(st.binary(max_size=300))
def test_bytes_that_are_no_pack_are_refused(data: bytes) -> None:
    with pytest.raises(BadPack):
        decoded(data)


@pytest.mark.parametrize(
    "data",
    [
        raw(b""),
        raw(b"x" * (LONGEST_HEADER + 1)),
        b"\xff\xff\xff\xff",
        raw(b"{"),
        raw(b"[]"),
        raw(b"{}"),
        raw(b"\xff\xfe"),
        raw(b"[" * 60_000),
        raw(b'{"bytes": -1}'),
        raw(b'{"bytes": true}'),
        raw(b'{"bytes": 1.0}', b"x"),
        raw(b'{"bytes": "1"}', b"x"),
        raw(json.dumps({"bytes": MOST + 1}).encode()),
        raw(b'{"end": true, "bytes": 1}', b"x"),
        end_frame() + b"x",
        end_frame() + end_frame(),
    ],
)
def test_what_no_writer_of_ours_makes_is_refused(data: bytes) -> None:
    with pytest.raises(BadPack) as caught:
        decoded(data + (b"" if data.startswith(end_frame()) else end_frame()))
    assert not isinstance(caught.value, CutOff)


def test_a_frame_without_a_place_for_its_header_is_not_written() -> None:
    with pytest.raises(ValueError, match="at most 65536"):
        frame({"path": "x" * LONGEST_HEADER})


def test_a_decoder_holds_one_frame_at_a_time() -> None:
    piece = frame({}, bytes(100_000))
    decoder = PackDecoder(most_bytes=100_000)
    tracemalloc.start()
    try:
        for _ in range(200):
            for _header, content in decoder.feed(piece):
                assert len(content) == 100_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_lie_about_a_size_costs_no_memory() -> None:
    decoder = PackDecoder(most_bytes=2**40)
    tracemalloc.start()
    try:
        assert list(decoder.feed(raw(json.dumps({"bytes": 2**39}).encode(), b"x"))) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
