"""`POST /unpack` hands out what is in a ZIP, part by part, and no ZIP can do harm."""

from __future__ import annotations

import hashlib
import random
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.conftest import StartGateway
from support.gateway import Gateway, assert_problem
from support.packs import SECRET, frames_of, unpack
from support.patience import PATIENCE, wait_until
from support.rude_members import rude
from support.zips import RawMember, many_tiny, raw_zip, zipped
from waybill.files.packs import MEDIA_TYPE, frame
from waybill.http.proofs import ask

HOSTILE = Path(__file__).resolve().parents[3] / "shared" / "data" / "hostile"
RUDE = "support.rude_members:as_told"
MB = 2**20
NOISE = random.Random(1).randbytes(700_000)


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that makes small parts of its answers."""
    gateway = Gateway(
        tmp_path_factory.mktemp("gateway"),
        gateway_secret=SECRET,
        gateway_open="false",
        gateway_max_result_mb="4",
        batch_max_mb="8",
        batch_max_unpacked_mb="16",
        batch_max_files="1000",
    )
    yield gateway
    gateway.close()
    assert "Traceback" not in gateway.log_text


@pytest.fixture(scope="module")
def rude_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("rude"), RUDE, gateway_secret=SECRET, gateway_parse_timeout="3")
    yield gateway
    gateway.close()


def processed(gateway: Gateway) -> dict[str, object]:
    """The log line of the last answer."""
    return [line for line in gateway.log if line["event"] == "processed"][-1]


def test_what_is_in_a_zip_comes_out_member_by_member(proven: Gateway) -> None:
    inner = zipped(("deep.txt", b"deep"))
    archive = zipped(("a/", b""), ("a/b.txt", b"text"), ("c.json", b'{"a": 1}'), ("in.zip", inner), ("../d", b""))
    answer = unpack(proven, archive, job_id="job-1")
    found, end = frames_of(answer)
    assert [(header["no"], header["path"], header.get("type"), content) for header, content in found] == [
        (0, "a/b.txt", "text", b"text"),
        (1, "c.json", "json", b'{"a": 1}'),
        (2, "in.zip/deep.txt", "text", b"deep"),
        (3, "../d", None, b""),
    ]
    assert found[0][0] == {
        "no": 0,
        "path": "a/b.txt",
        "type": "text",
        "bytes": 4,
        "sha256": hashlib.sha256(b"text").hexdigest(),
    }
    assert found[3][0]["problem"] == {
        "code": "PARSE_ERROR",
        "fault": "unsafe_name",
        "key": "member.outside",
        "params": {},
        "detail": "The file's path in the ZIP leads out of the ZIP (“..”).",
    }
    assert end == {"end": True, "bytes": 0, "files": 4, "unpacked": 16 + len(inner), "problem": None}
    assert answer.headers["x-job-id"] == "job-1"
    assert answer.headers["waybill-proof"]
    assert not proven.spooled()


def test_a_large_answer_is_made_in_parts(proven: Gateway) -> None:
    members = [(f"{no}.bin", NOISE[no:]) for no in range(8)] + [("n.zip", zipped(("x", NOISE), ("y", b"y")))]
    found, end = frames_of(unpack(proven, zipped(*members)))
    assert [content for _, content in found] == [content for _, content in members[:-1]] + [NOISE, b"y"]
    assert (end["files"], end["problem"]) == (10, None)
    parts = processed(proven)["parts"]
    assert isinstance(parts, int)
    assert parts > 3
    assert not proven.spooled()


def test_a_file_that_is_larger_than_allowed_fails_alone(proven: Gateway) -> None:
    found, end = frames_of(unpack(proven, zipped(("large", NOISE * 4), ("small", b"small"))))
    assert (found[0][0]["problem"]["code"], found[0][0]["problem"]["key"]) == ("TOO_LARGE", "member.too_large")
    assert found[1][1] == b"small"
    assert end["problem"] is None


def test_a_zip_that_unpacks_to_too_much_says_so_at_its_end(proven: Gateway) -> None:
    many = zipped(*((f"{no}", b" " * 100 + bytes([no % 256]) * 900_000) for no in range(30)))
    found, end = frames_of(unpack(proven, many))
    assert 10 < len(found) < 30
    assert (end["problem"]["code"], end["problem"]["key"]) == ("TOO_LARGE", "archive.too_large")
    assert end["files"] == len(found)


@pytest.mark.parametrize(
    ("archive", "fault", "key"),
    [
        (b"text", "unreadable", "archive.no_zip"),
        (b"", "unreadable", "archive.no_zip"),
        (zipped(("a", b"a"))[:-10], "unreadable", "archive.cut_off"),
        (zipped(), "unreadable", "archive.empty"),
        (raw_zip([RawMember.of("a", b"a").but(flags=1)]), "encrypted", "archive.encrypted"),
        (many_tiny(1001), "too_many_files", "archive.too_many_files"),
        (many_tiny(60_000), "too_many_files", "archive.too_many_files"),
        (zipped(("[Content_Types].xml", b""), ("word/document.xml", b"")), "unreadable", "archive.document"),
    ],
)
def test_a_zip_that_cannot_be_unpacked_is_refused_as_a_whole(
    proven: Gateway, archive: bytes, fault: str, key: str
) -> None:
    problem = assert_problem(unpack(proven, archive, job_id="j"), 422, "PARSE_ERROR")
    assert (problem["fault"], problem["key"], problem["job_id"]) == (fault, key, "j")
    assert not proven.spooled()


def test_a_zip_that_is_too_large_is_refused(proven: Gateway) -> None:
    assert_problem(unpack(proven, bytes(10 * MB)), 413, "TOO_LARGE")


def test_only_services_that_know_the_secret_may_ask(proven: Gateway, start_gateway: StartGateway) -> None:
    files = {"file": ("a.zip", zipped(("a", b"a")))}
    assert_problem(proven.client.post("/unpack", files=files), 401, "UNAUTHORIZED")
    opened = start_gateway(None, gateway_secret=SECRET)
    assert_problem(opened.client.post("/unpack", files=files), 403, "FORBIDDEN")
    assert_problem(opened.client.post("/extract", content=b""), 403, "FORBIDDEN")


def test_a_request_that_is_no_form_or_wants_something_else_is_refused(proven: Gateway) -> None:
    _, proof = ask(SECRET.encode(), "POST", "/unpack")
    assert_problem(proven.client.post("/unpack", content=b"PK", headers=proof), 400, "VALIDATION_ERROR")
    _, proof = ask(SECRET.encode(), "POST", "/unpack")
    assert_problem(proven.client.post("/unpack", files={"other": b""}, headers=proof), 400, "VALIDATION_ERROR")
    answer = unpack(proven, zipped(("a", b"a")), headers={"Accept": "application/json"})
    assert_problem(answer, 406, "VALIDATION_ERROR")


def test_hostile_files_do_no_harm(proven: Gateway) -> None:
    if not HOSTILE.exists():
        pytest.skip("there is no ../shared/data beside the repository")
    files = sorted(path for path in HOSTILE.iterdir() if path.is_file())
    assert files
    for path in files:
        assert unpack(proven, path.read_bytes()).status_code in (200, 422), path.name
    found, end = frames_of(unpack(proven, zipped(*((path.name, path.read_bytes()) for path in files))))
    assert {header["path"].partition("/")[0] for header, _ in found} == {path.name for path in files}
    assert end["problem"] is None


# Parsers that die


def paths_and_faults(answer: httpx.Response) -> list[tuple[str, str | None]]:
    found, end = frames_of(answer)
    assert end["problem"] is None
    assert [header["no"] for header, _ in found] == list(range(end["files"]))
    return [(header["path"], header.get("problem", {}).get("fault")) for header, _ in found]


@pytest.mark.parametrize(
    ("do", "fault"), [("crash", "parser_crashed"), ("memory", "too_much_memory"), ("hang", "took_too_long")]
)
def test_a_member_that_kills_its_parser_fails_alone(rude_gateway: Gateway, do: str, fault: str) -> None:
    killer = zipped(("x", b"x"), ("killer", rude(do=do)), ("y", b"y"))
    answer = unpack(rude_gateway, zipped(("a", b"a"), ("n.zip", killer), ("b", b"b")))
    assert paths_and_faults(answer) == [
        *(("a", None), ("n.zip/x", None), ("n.zip/killer", fault), ("n.zip/y", None), ("b", None)),
    ]
    assert not rude_gateway.spooled()


def test_a_parser_that_is_killed_in_the_middle_of_a_part_costs_nothing(rude_gateway: Gateway, tmp_path: Path) -> None:
    marker = rude_gateway.spool / next(rude_gateway.spool.glob("run-*")).name / "killed"
    members = [("a", b"a"), ("once", rude(do="killed", once=str(marker))), ("b", b"b")]
    assert paths_and_faults(unpack(rude_gateway, zipped(*members))) == [(name, None) for name, _ in members]
    assert marker.exists()
    marker.unlink()


def test_a_parser_that_is_always_killed_condemns_nobody(rude_gateway: Gateway) -> None:
    answer = unpack(rude_gateway, zipped(("a", b"a"), ("killed", rude(do="killed"))))
    assert_problem(answer, 503, "NOT_READY")
    assert answer.headers["retry-after"]


def test_a_full_disk_is_the_gateways_fault(rude_gateway: Gateway) -> None:
    assert_problem(unpack(rude_gateway, zipped(("full", rude(do="disk_full")))), 507, "IO_ERROR")


def test_a_failure_after_the_answer_has_begun_breaks_it_off(start_gateway: StartGateway) -> None:
    gateway = start_gateway(RUDE, gateway_secret=SECRET, gateway_max_result_mb="4")
    archive = zipped(("a", NOISE), ("b", NOISE), ("c", NOISE), ("full", rude(do="disk_full")))
    _, proof = ask(SECRET.encode(), "POST", "/unpack")
    received = b""
    with (
        pytest.raises(httpx.RemoteProtocolError),
        gateway.client.stream("POST", "/unpack", files={"file": ("a.zip", archive)}, headers=proof) as answer,
    ):
        assert answer.status_code == 200
        for chunk in answer.iter_raw():
            received += chunk
    assert len(received) > 2 * len(NOISE)
    wait_until(lambda: not gateway.spooled(), "the removal of the files")
    assert [line for line in gateway.log if line["event"] == "answer_broken_off"]


def test_a_zip_of_killers_is_given_up(start_gateway: StartGateway) -> None:
    gateway = start_gateway(RUDE, gateway_secret=SECRET, gateway_processes="2")
    found, end = frames_of(unpack(gateway, zipped(*((f"{no}", rude(do="memory")) for no in range(15)))))
    assert {header["problem"]["fault"] for header, _ in found} == {"too_much_memory"}
    assert len(found) == end["files"] == 10
    assert end["problem"]["key"] == "archive.too_many_deaths"


# Clients that hang up


def test_a_client_that_hangs_up_ends_the_work(start_gateway: StartGateway) -> None:
    gateway = start_gateway(RUDE, gateway_secret=SECRET)
    (parser,) = gateway.parsers()
    _, proof = ask(SECRET.encode(), "POST", "/unpack")
    body = httpx.Request("POST", gateway.url, files={"file": ("a.zip", zipped(("hang", rude(do="hang"))))})
    head = f"POST /unpack HTTP/1.1\r\nHost: waybill\r\nContent-Type: {body.headers['content-type']}\r\n"
    head += f"Content-Length: {body.headers['content-length']}\r\nAuthorization: {proof['Authorization']}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        connection.sendall(head.encode() + body.read())
        wait_until(lambda: any(path.name.endswith("bookmark") for path in gateway.spooled()), "the parse")
    wait_until(lambda: not parser.is_running(), "the end of the parser")
    wait_until(lambda: not gateway.spooled(), "the removal of the files")
    assert "client_gone" in {line["event"] for line in gateway.log}


def test_on_sigterm_an_answer_that_has_begun_is_finished(start_gateway: StartGateway) -> None:
    gateway = start_gateway(None, gateway_secret=SECRET, gateway_max_result_mb="4")
    archive = zipped(*((f"{no}", NOISE) for no in range(30)))
    _, proof = ask(SECRET.encode(), "POST", "/unpack")
    received = bytearray()
    with gateway.client.stream("POST", "/unpack", files={"file": ("a.zip", archive)}, headers=proof) as answer:
        for chunk in answer.iter_raw():
            if not received:
                gateway.process.send_signal(15)
            received += chunk
    answer = httpx.Response(200, headers={"content-type": MEDIA_TYPE}, content=bytes(received))
    found, _ = frames_of(answer)
    assert len(found) == 30
    assert gateway.process.wait(timeout=PATIENCE) == 0


@pytest.mark.heavy
def test_memory_stays_flat_for_a_zip_of_half_a_gigabyte(start_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = start_gateway(None, gateway_secret=SECRET)
    peaks: dict[int, int] = {}
    for count in (5, 600):
        path = tmp_path / f"{count}.zip"
        with zipfile.ZipFile(path, "w") as made:
            for no in range(count):
                made.writestr(f"{no}.bin", NOISE + bytes([no % 256]) * 100_000)
        _, proof = ask(SECRET.encode(), "POST", "/unpack")
        size = peak = 0
        with (
            path.open("rb") as file,
            gateway.client.stream("POST", "/unpack", files={"file": ("a.zip", file)}, headers=proof) as answer,
        ):
            for number, chunk in enumerate(answer.iter_raw(256 * 1024)):
                size += len(chunk)
                if number % 16:
                    continue
                peak = max(peak, gateway.memory(), *(each.memory_info().rss for each in gateway.parsers()))
        assert size > count * 800_000
        peaks[count] = peak
    assert path.stat().st_size > 450 * MB
    assert peaks[600] - peaks[5] < 32 * MB


def test_what_a_frame_says_is_all_that_there_is() -> None:
    """A header with a quoted path of the greatest length fits."""
    assert frame({"path": "\ufffd" * 1000, "problem": {"detail": "x" * 1000, "params": {"name": "\ufffd" * 1000}}})
