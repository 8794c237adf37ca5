"""The gateway as a whole: it answers every document, survives every one of them, and leaves when it is told."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from gateway.conftest import StartGateway
from support.gateway import Gateway, assert_problem, form, head, part, read_all, told
from support.patience import PATIENCE, wait_until

MB = 1024 * 1024


def test_alive_and_ready_with_a_list_of_mappings(obedient: Gateway) -> None:
    assert obedient.client.get("/livez").json() == {"status": "alive"}
    assert obedient.client.get("/readyz").json() == {"status": "ready"}
    listed = obedient.client.get("/mappings").json()["mappings"]
    mapping = next(each for each in listed if each["name"] == "pt_simon_invoice_v1")
    assert mapping["title"]
    assert len(mapping["sha256"]) == 64


def test_refusals_of_paths_and_methods_are_problem_documents(obedient: Gateway) -> None:
    assert_problem(obedient.client.get("/"), 404, "NOT_FOUND")
    assert_problem(obedient.client.get("/process"), 405, "VALIDATION_ERROR")
    assert_problem(obedient.client.put("/process"), 405, "VALIDATION_ERROR")


def test_the_stages_are_named_with_their_milliseconds(obedient: Gateway) -> None:
    assert obedient.send(told()).headers["x-stage"] == "words;dur=12.3, tables;dur=4.0"
    assert obedient.send(told(fault="no_text")).headers["x-stage"] == "words;dur=1.2"


@pytest.mark.parametrize("how", ["field", "header", "both"])
def test_a_job_is_named_in_the_answer_and_on_every_line_of_the_log(obedient: Gateway, how: str) -> None:
    job = f"0198-{how}"
    fields = {"job_id": job} if how != "header" else {}
    headers = {"X-Job-Id": job} if how != "field" else {}
    assert obedient.send(told(), headers=headers, **fields).headers["x-job-id"] == job
    refused = obedient.send(told(fault="encrypted"), headers=headers, **fields)
    assert refused.headers["x-job-id"] == job
    assert refused.json()["job_id"] == job
    crashed = obedient.send(told(do="vanish"), headers=headers, **fields)
    assert crashed.json()["job_id"] == job
    lines = [line for line in obedient.log if line.get("job_id") == job and line["event"] != "request"]
    died = ["parser_died", "parse_repeated", "parser_died"]
    assert [line["event"] for line in lines] == ["processed", "processed", *died, "refused"]
    assert lines[0]["service"] == "gateway"
    assert lines[0]["stages"] == {"words": 0.0123, "tables": 0.004}
    assert {"bytes", "kind", "wants", "upload_seconds", "wait_seconds", "parse_seconds"} <= lines[0].keys()


def test_each_request_leaves_a_line_of_access_with_its_job(obedient: Gateway) -> None:
    answer = obedient.send(told(), job_id="accessed")

    def lines() -> list[dict[str, Any]]:
        return [line for line in obedient.log if line["event"] == "request" and line.get("job_id") == "accessed"]

    wait_until(lines, "the line is written after the answer is sent")
    (line,) = lines()
    assert (line["method"], line["route"], line["status"]) == ("POST", "/process", 200)
    assert line["request_id"] == answer.headers["x-request-id"]
    assert line["seconds"] > 0


def test_a_job_does_not_name_the_next_request_on_its_connection(obedient: Gateway) -> None:
    obedient.send(told(), job_id="named")
    before = len(obedient.log)
    answer = obedient.send(told())
    assert "x-job-id" not in answer.headers
    later = [line for line in obedient.log[before:] if line.get("request_id") == answer.headers["x-request-id"]]
    assert [line.get("job_id") for line in later if line["event"] == "processed"] == [None]


def test_two_names_for_one_job_are_a_bad_form(obedient: Gateway) -> None:
    assert_problem(obedient.send(told(), headers={"X-Job-Id": "a"}, job_id="b"), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize("job_id", ["a b", "-a", "ü", "x" * 101, "a/b", "a\tb"])
def test_a_job_id_is_short_and_plain(obedient: Gateway, job_id: str) -> None:
    assert_problem(obedient.send(told(), job_id=job_id), 400, "VALIDATION_ERROR")


def test_a_mapping_may_be_named_with_or_without_its_ending(obedient: Gateway) -> None:
    for name in ("pt_simon_invoice_v1", "pt_simon_invoice_v1.json", " pt_simon_invoice_v1 "):
        assert obedient.send(told(), mapping=name).json()["mapping"] == "pt_simon_invoice_v1"
    assert obedient.send(told(), mapping="").json()["mapping"] is None


@pytest.mark.parametrize(
    "name",
    [
        "unknown",
        "../pt_simon_invoice_v1",
        "pt_simon_invoice_v1/../pt_simon_invoice_v1",
        "/etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "pt_simon_invoice_v1.json.json",
        "pt_simon_invoice_v1\0",
        "PT_SIMON_INVOICE_V1",
        "mapping.json",
        ".json",
        "．．／pt_simon_invoice_v1",
        "a" * 500,
    ],
)
def test_any_other_mapping_is_unknown(obedient: Gateway, name: str) -> None:
    problem = assert_problem(obedient.send(told(), mapping=name), 400, "BAD_MAPPING")
    assert "pt_simon_invoice_v1" in problem["mappings"]


def test_an_unknown_mapping_is_refused_before_the_document_has_arrived(obedient: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", obedient.port), timeout=30) as connection:
        begin = head(Content_Length="900000").replace("\n", "\r\n").encode()
        connection.sendall(begin + part("mapping", b"unknown") + part("file", b"%PDF-")[:50])
        assert b"400 Bad Request" in connection.recv(1000)


def test_what_is_no_document_is_refused_whatever_it_is_called(obedient: Gateway) -> None:
    for content in (b"", b"GIF89a\0", b"PK\x03\x04", b"\x89PNG\r\n\x1a\n"):
        problem = assert_problem(obedient.send(content), 415, "NOT_PDF")
        assert "is not a PDF, Word, Excel" in problem["detail"]


def test_a_mapping_that_does_not_fit_is_the_requests_fault(obedient: Gateway) -> None:
    answer = obedient.send(told(mapping_fault="mapping.no_xml"), mapping="pt_simon_invoice_v1")
    problem = assert_problem(answer, 400, "BAD_MAPPING")
    assert (problem["key"], problem["detail"]) == ("mapping.no_xml", "the mapping does not say what XML to write")


@pytest.mark.parametrize(
    ("rude", "fault"),
    [
        ("segfault", "parser_crashed"),
        ("abort", "parser_crashed"),
        ("vanish", "parser_crashed"),
        ("spin", "took_too_long"),
        ("sleep", "took_too_long"),
        ("hoard", "too_much_memory"),
    ],
)
def test_a_document_that_kills_its_parser_is_at_fault_and_the_next_one_is_fine(
    obedient: Gateway, rude: str, fault: str
) -> None:
    problem = assert_problem(obedient.send(told(do=rude)), 422, "PARSE_ERROR")
    assert problem["fault"] == fault
    assert [finding["code"] for finding in problem["findings"]] == [fault]
    assert obedient.send(told()).status_code == 200
    assert obedient.client.get("/readyz").status_code == 200


def test_a_parser_that_aborts_for_lack_of_memory_is_told_from_one_that_crashed(obedient: Gateway) -> None:
    # It has 256 MB.
    problem = assert_problem(obedient.send(told(do="abort", megabytes=190), job_id="large"), 422, "PARSE_ERROR")
    assert problem["fault"] == "too_much_memory"
    assert "parse_repeated" not in [line["event"] for line in obedient.log if line.get("job_id") == "large"]
    assert obedient.send(told(do="hold", megabytes=190, **{"for": 0})).status_code == 200
    problem = assert_problem(obedient.send(told(do="abort")), 422, "PARSE_ERROR")
    assert problem["fault"] == "parser_crashed", "the memory was that of the document before"


def test_a_document_whose_parser_is_killed_from_outside_is_answered_all_the_same(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_processes="2")
    for how in (signal.SIGKILL, signal.SIGTERM):
        names = f"neighbour-{how}", f"victim-{how}"
        with ThreadPoolExecutor() as threads:
            neighbour, victim = (threads.submit(_send_sleeper, gateway, name) for name in names)
            first = [_pid(gateway, name) for name in names]
            os.kill(first[1], how)
            Path(_in_spool(gateway, f"{names[0]}-go")).touch()
            assert neighbour.result().json()["note"] == {"pid": first[0]}, "it was not disturbed"
            second = _pid(gateway, names[1], after=first[1])
            Path(_in_spool(gateway, f"{names[1]}-go")).touch()
            assert victim.result().json()["note"] == {"pid": second}


def test_a_document_whose_parser_is_killed_again_may_come_back(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    with ThreadPoolExecutor() as threads:
        victim = threads.submit(_send_sleeper, gateway, "victim")
        first = _pid(gateway, "victim")
        os.kill(first, signal.SIGKILL)
        os.kill(_pid(gateway, "victim", after=first), signal.SIGKILL)
        answer = victim.result()
    assert "short of memory" in assert_problem(answer, 503, "NOT_READY")["detail"]
    assert 5 <= int(answer.headers["retry-after"]) <= 30
    killed = [line for line in gateway.log if line["event"] == "parser_killed"]
    assert [line["job_id"] for line in killed] == ["victim", "victim"]
    assert gateway.send(told()).status_code == 200
    assert gateway.client.get("/readyz").status_code == 200


def _send_sleeper(gateway: Gateway, name: str) -> httpx.Response:
    """Send a document that is parsed until the file `NAME-go` exists."""
    return gateway.send(
        told(do="sleep", started=_in_spool(gateway, name), until=_in_spool(gateway, f"{name}-go")), job_id=name
    )


def _pid(gateway: Gateway, name: str, *, after: int | None = None) -> int:
    """The process that parses this sleeper; not the one before it."""
    file = Path(_in_spool(gateway, name))
    wait_until(lambda: file.exists() and int(file.read_text()) != after, f"a parse of {name}")
    return int(file.read_text())


def test_a_fault_of_ours_is_ours_and_tells_nothing(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    answer = gateway.send(told(do="stumble"), job_id="stumbling")
    assert_problem(answer, 502, "GW_5XX")
    assert "hunter2" not in answer.text
    line = next(line for line in gateway.log if line["event"] == "conversion_broken")
    assert line["job_id"] == "stumbling"
    assert "RuntimeError" in line["exception"]
    assert "hunter2" not in gateway.log_text, "a message that may quote a document is not logged"


def test_a_full_house_is_refused_at_once_and_before_the_body(start_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = start_gateway(gateway_processes="1", gateway_queue="1")
    with ThreadPoolExecutor() as threads:
        inside: list[Future[httpx.Response]] = [
            threads.submit(gateway.send, told(do="sleep", started=_in_spool(gateway), until=_in_spool(gateway, "go")))
        ]
        wait_until(lambda: list(gateway.spool.rglob("started")), "the first parse")
        inside.append(threads.submit(gateway.send, told()))
        wait_until(lambda: any(p.stat().st_size for p in gateway.spool.rglob("2.document")), "the second request")
        # Everything below happens while the first document is still parsed: nobody waits for it to be refused.
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
            request = head(Content_Length=str(10 * MB), Expect="100-continue")
            connection.sendall(request.replace("\n", "\r\n").encode())
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"NOT_READY" in answer
        assert 1 <= int(answer.lower().partition(b"retry-after: ")[2].split(b"\r\n")[0]) <= 30
        assert_problem(gateway.send(b"%PDF-" + b"x" * 20 * MB), 503, "NOT_READY")
        assert gateway.client.get("/readyz").status_code == 200, "busy is not broken"
        assert not inside[0].done()
        Path(_in_spool(gateway, "go")).touch()
        assert [each.result().status_code for each in inside] == [200, 200], "who was let in is served"
    assert gateway.send(told()).status_code == 200


def _in_spool(gateway: Gateway, name: str = "started") -> str:
    """A file that a parser may see: it reaches nothing but the folder of its gateway."""
    (run,) = gateway.spool.glob("run-*")
    return str(run / name)


def test_who_waits_too_long_for_a_parser_is_asked_to_come_back(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_queue_timeout="200ms")
    with ThreadPoolExecutor() as threads:
        long = threads.submit(
            gateway.send, told(do="sleep", started=_in_spool(gateway), until=_in_spool(gateway, "go"))
        )
        wait_until(lambda: list(gateway.spool.rglob("started")), "the first parse")
        answer = gateway.send(told())
        assert_problem(answer, 503, "NOT_READY")
        assert int(answer.headers["retry-after"]) >= 1
        Path(_in_spool(gateway, "go")).touch()
        assert long.result().status_code == 200


def test_a_parse_that_nobody_waits_for_is_killed(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    (parser,) = gateway.parsers()
    body = form(part("file", told(do="spin", started=_in_spool(gateway))))
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
        connection.sendall(head(Content_Length=str(len(body))).replace("\n", "\r\n").encode() + body)
        wait_until(lambda: list(gateway.spool.rglob("started")), "the parse")
    wait_until(lambda: not parser.is_running(), "the end of the parse")
    assert gateway.send(told()).status_code == 200
    wait_until(lambda: [path.name for path in gateway.spooled()] == ["started"], "an empty spool")
    assert "client_gone" in [line["event"] for line in gateway.log]


def test_sigterm_finishes_what_runs_and_takes_nothing_new(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_processes="2")
    with ThreadPoolExecutor() as threads:
        long = threads.submit(
            gateway.send, told(do="sleep", started=_in_spool(gateway), until=_in_spool(gateway, "go"))
        )
        wait_until(lambda: list(gateway.spool.rglob("started")), "the parse")
        gateway.process.send_signal(signal.SIGTERM)
        wait_until(lambda: gateway.client.get("/readyz").status_code == 503, "that it is not ready any more")
        assert_problem(gateway.send(told()), 503, "NOT_READY")
        assert gateway.client.get("/livez").status_code == 200
        Path(_in_spool(gateway, "go")).touch()
        assert long.result().status_code == 200
    assert gateway.process.wait(timeout=PATIENCE) == 0
    assert list(gateway.spool.glob("run-*")) == []
    assert "Traceback" not in gateway.log_text


def test_sigterm_waits_only_so_long(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_shutdown_grace="500ms")
    body = form(part("file", told(do="sleep", started=_in_spool(gateway))))
    (parser,) = gateway.parsers()
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
        connection.sendall(head(Content_Length=str(len(body))).replace("\n", "\r\n").encode() + body)
        wait_until(lambda: list(gateway.spool.rglob("started")), "the parse")
        began = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - began < 24, "less than the default grace"
    assert not parser.is_running()


def test_kill_9_leaves_no_process_and_the_next_start_no_file(start_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = start_gateway(gateway_processes="2")
    wait_until(lambda: len(gateway.parsers()) == 2, "both parsers")
    parsers = gateway.parsers()
    body = form(part("file", told(do="spin", started=_in_spool(gateway))))
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
        connection.sendall(head(Content_Length=str(len(body))).replace("\n", "\r\n").encode() + body)
        wait_until(lambda: list(gateway.spool.rglob("started")), "the parse")
        gateway.stop(signal.SIGKILL)
    gone, alive = psutil.wait_procs(parsers, timeout=PATIENCE)
    assert not alive
    assert len(gone) == 2
    assert gateway.spooled()
    again = start_gateway()
    assert again.spooled() == []
    assert again.send(told()).status_code == 200


def test_parsers_that_cannot_start_are_said_by_readyz(start_gateway: StartGateway) -> None:
    gateway = start_gateway("support.rude_parses:no_such_function", ready=False)

    def answers() -> bool:
        try:
            return "parser_cannot_start" in gateway.log_text and gateway.client.get("/livez").status_code == 200
        except httpx.TransportError:
            return False

    wait_until(answers, "the first answer")
    assert_problem(gateway.client.get("/readyz"), 503, "NOT_READY")
    assert_problem(gateway.send(told()), 503, "NOT_READY")


def test_trouble_with_the_storage_is_said_and_passes(start_gateway: StartGateway, tmp_path: Path) -> None:
    # A folder that is gone stands for a disk that is full: both are the storage's trouble and not the document's.
    gateway = start_gateway()
    (run,) = gateway.spool.glob("run-*")
    hidden = run.with_name("hidden")
    run.rename(hidden)
    assert_problem(gateway.send(told()), 507, "IO_ERROR")
    hidden.rename(run)
    assert gateway.send(told()).status_code == 200


def test_a_wrong_mapping_in_the_folder_stops_the_start(start_gateway: StartGateway, tmp_path: Path) -> None:
    folder = tmp_path / "mappings"
    folder.mkdir()
    (folder / "mine.json").write_text("{}")
    for place in (folder, tmp_path / "nowhere"):
        gateway = start_gateway(ready=False, folder=f"of-{place.name}", gateway_mappings_dir=str(place))
        assert gateway.process.wait(timeout=PATIENCE) == 2
        assert "WAYBILL_MAPPINGS_DIR" in gateway.log_text
        assert str(place) in gateway.log_text


def test_a_bad_configuration_exits_with_2(start_gateway: StartGateway) -> None:
    gateway = start_gateway(ready=False, gateway_processes="many", max_upload_mb="0")
    assert gateway.process.wait(timeout=PATIENCE) == 2
    assert "WAYBILL_GATEWAY_PROCESSES" in gateway.log_text
    assert "WAYBILL_MAX_UPLOAD_MB" in gateway.log_text


@pytest.mark.parametrize("turns", [2, pytest.param(8, marks=[pytest.mark.heavy, pytest.mark.timeout(600)])])
def test_a_storm_of_good_and_bad_clients_leaves_everything_as_it_was(start_gateway: StartGateway, turns: int) -> None:
    gateway = start_gateway(gateway_processes="2", gateway_queue="6", gateway_parse_timeout="1")
    for _ in range(5):
        assert gateway.send(told()).status_code == 200
    wait_until(lambda: len(gateway.parsers()) == 2, "both parsers")
    before = gateway.memory()
    deeds = ["echo", "segfault", "vanish", "hoard", "echo", "spin", "stumble", "leave"]
    statuses: list[int] = []
    mutex = threading.Lock()

    def client(number: int) -> None:
        with httpx.Client(base_url=gateway.url, trust_env=False, timeout=PATIENCE) as own:
            for turn in range(turns):
                deed = deeds[(2 * number + turn) % len(deeds)]
                if deed == "leave":
                    with contextlib.suppress(OSError):
                        gateway.raw(head(Content_Length="99999"), part("file", b"%PDF-1")[:-2], hang_up=True)
                    continue
                answer = own.post("/process", files={"file": told(do=deed)}, headers={"Accept": "application/json"})
                with mutex:
                    statuses.append(answer.status_code)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 422, 502, 503}
    assert {200, 422} <= set(statuses)
    wait_until(lambda: gateway.spooled() == [], "an empty spool")
    wait_until(lambda: len(gateway.parsers()) == 2, "both parsers")
    assert gateway.send(told()).status_code == 200
    assert gateway.memory() - before < 15 * MB


def test_parsers_that_are_killed_all_the_time_condemn_nobody_and_leave_nothing(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_processes="2", gateway_queue="30")
    statuses: list[int] = []
    enough = threading.Event()

    def client() -> None:
        with httpx.Client(base_url=gateway.url, trust_env=False, timeout=2 * PATIENCE) as own:
            while not enough.is_set():
                files = {"file": told(do="sleep", **{"for": 0.1})}
                answer = own.post("/process", files=files, headers={"Accept": "application/json"})
                statuses.append(answer.status_code)
                if answer.status_code == 503:
                    assert int(answer.headers["retry-after"]) >= 1
                    enough.wait(0.2)  # who would come back at once would only be refused again

    def kill_all() -> None:
        for parser in gateway.parsers():
            with contextlib.suppress(psutil.NoSuchProcess):
                parser.send_signal(signal.SIGKILL)

    with ThreadPoolExecutor(max_workers=20) as threads:
        clients = [threads.submit(client) for _ in range(20)]
        try:
            for turn in range(10):
                answered = statuses.count(200)
                wait_until(lambda answered=answered: statuses.count(200) > answered, "an answer")  # type: ignore[misc]
                kill_all()
                if turn % 2:  # also while they start
                    wait_until(gateway.parsers, "a parser that starts")
                    kill_all()
        finally:
            enough.set()
        for each in clients:
            each.result()
    assert [line["event"] for line in gateway.log].count("parser_killed") >= 3
    assert set(statuses) <= {200, 503}
    wait_until(lambda: len(gateway.parsers()) == 2, "both parsers")
    assert gateway.send(told()).status_code == 200
    wait_until(lambda: gateway.spooled() == [], "an empty spool")
    assert [each for each in gateway.parsers() if each.status() == psutil.STATUS_ZOMBIE] == []
    assert "Traceback" not in gateway.log_text
