"""Nothing of a document stays on disk, also when its gateway was killed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

from waybill_gateway.spool import Spool


def test_a_place_is_empty_again_at_its_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with spool.files() as first, spool.files() as second:
        assert len({first.document, first.answer, second.document, second.answer}) == 4
        first.document.write_text("secret")
        first.answer.write_text("secret")
    assert [path.name for path in spool.folder.iterdir()] == ["lock"]
    spool.close()
    assert list(tmp_path.glob("run-*")) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_uses_stays(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from waybill_gateway.spool import Spool\n"
        "spool = Spool(Path(sys.argv[1]))\n"
        "with spool.files() as files:\n"
        "    files.document.write_text('secret'); print(files.document, flush=True); time.sleep(600)\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        files = [Path(process.stdout.readline().strip()) for process in processes if process.stdout]
        processes[0].kill()
        processes[0].wait()
        assert files[0].exists()
        spool = Spool(tmp_path)
        assert not files[0].parent.exists()
        assert files[1].exists()
        spool.close()
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_only_we_can_look_in(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "new")
    assert spool.folder.stat().st_mode & 0o077 == 0
    spool.close()


def test_a_neighbour_that_is_not_ours_does_not_keep_us_from_starting(tmp_path: Path) -> None:
    (tmp_path / "run-file").write_text("not a folder")
    (tmp_path / "run-link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "run-odd").mkdir()
    (tmp_path / "run-odd" / "lock").symlink_to("/etc/passwd")
    spool = Spool(tmp_path)
    assert (tmp_path / "run-file").exists()
    assert (tmp_path / "run-odd" / "lock").is_symlink()
    spool.close()
    assert not spool.folder.exists()


def test_a_folder_goes_only_while_nobody_starts(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    starting = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(starting, fcntl.LOCK_EX)
    closing = threading.Thread(target=spool.close)
    closing.start()
    closing.join(0.2)
    assert spool.folder.exists()
    os.close(starting)
    closing.join(10)
    assert not spool.folder.exists()
