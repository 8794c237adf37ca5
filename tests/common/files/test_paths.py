"""Whatever a stranger calls a file, it lies inside the folder we meant."""

from __future__ import annotations

import os
import stat
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from waybill.errors import UnsafePath
from waybill.files import folder_under, open_under, resolve_under, safe_name

# Pieces that have fooled somebody's path handling before, to be put together at random.
HOSTILE = ("..", ".", "/", "//", "\\", "~", "C:", "\\\\host\\share", "\0", "\n", " ", "con", "NUL.txt", "COM1", "COM¹")
UNICODE = ("．．", "‥", "／", "＼", "：", "\u202e", "\u200b", "\ud800", "e\u0301", "é", "\u3000", "\u00a0")
PIECES = st.sampled_from((*HOSTILE, *UNICODE, "a", "b.pdf", "link", "x" * 300))
PATHS = st.lists(PIECES | st.text(max_size=5), min_size=1, max_size=8).map("".join) | st.text()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file and links that lead out of it, beside a folder that is none of a stranger's business."""
    base = tmp_path_factory.mktemp("paths")
    (base / "outside").mkdir()
    (base / "outside" / "secret").write_text("secret")
    root = base / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "b.pdf").write_text("mine")
    (root / "link").symlink_to(base / "outside")
    (root / "a" / "link").symlink_to(base / "outside" / "secret")
    (root / "dangling").symlink_to(base / "outside" / "new")
    return root


@given(untrusted=PATHS)
@example("../outside/secret")
@example("link/secret")
@example("a/link")
@example("dangling")
@example("a/../../outside/secret")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=500)
def test_nothing_ever_resolves_outside_the_root(root: Path, untrusted: str) -> None:
    try:
        path = resolve_under(root, untrusted)
    except UnsafePath:
        return
    assert path.is_relative_to(root.resolve())
    assert path.resolve() == path, "no link and no '..' is left in it"
    assert path != root.resolve()


@given(untrusted=PATHS)
@example("link/secret")
@example("a/link")
@example("dangling")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=500)
def test_nothing_ever_opens_outside_the_root(root: Path, untrusted: str) -> None:
    try:
        file = open_under(root, untrusted)
    except (UnsafePath, FileNotFoundError, NotADirectoryError):
        return
    try:
        assert Path(f"/proc/self/fd/{file}").resolve().is_relative_to(root.resolve())
        assert os.read(file, 100) == b"mine"
    finally:
        os.close(file)


@pytest.mark.parametrize(
    "untrusted",
    [
        "",
        "/etc/passwd",
        "//host/share",
        "..",
        "a/..",
        "../x",
        "a/../../x",
        ".",
        "./a",
        "a//b",
        "a/",
        "a\\b",
        "..\\x",
        "\\\\host\\share",
        "\\\\?\\C:\\x",
        "C:",
        "C:\\x",
        "C:x",
        "c:/x",
        "file.txt:stream",
        "a\0b",
        "a\nb",
        "a\x7fb",
        "a\x85b",
        "CON",
        "con.txt",
        "a/Nul.tar.gz",
        "AUX ",
        "com1",
        "COM¹.pdf",
        "lpt9.x",
        "CONOUT$",
        "con .txt",
        "a.",
        "a ",
        "a./b",
        "．．/x",
        "‥/x",
        "a／b",
        "a＼b",
        "C：x",
        "a℀b",
        "\u202efdp.exe",
        "a\u200bb",
        "a\u2028b",
        "\ud800",
        "\ue000",
        "x" * 256,
        "ä" * 128,
        "a/" * 600 + "b",
    ],
)
def test_a_name_that_could_mean_something_else_is_refused(tmp_path: Path, untrusted: str) -> None:
    with pytest.raises(UnsafePath):
        resolve_under(tmp_path, untrusted)
    with pytest.raises(UnsafePath):
        open_under(tmp_path, untrusted, os.O_WRONLY | os.O_CREAT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "untrusted",
    ["a", "a/b/c.pdf", ".hidden", "a..b", "..a", "Rechnung März.pdf", "請求書.xlsx", "~root", "console.txt", "x" * 255],
)  # fmt: skip
def test_an_ordinary_name_is_accepted(tmp_path: Path, untrusted: str) -> None:
    assert resolve_under(tmp_path, untrusted) == tmp_path.resolve() / untrusted


def test_two_spellings_of_one_name_are_one_file(tmp_path: Path) -> None:
    assert resolve_under(tmp_path, "e\u0301.pdf") == resolve_under(tmp_path, "\u00e9.pdf")


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_text("mine")
    (tmp_path / "root").symlink_to("real")
    assert resolve_under(tmp_path / "root", "f") == (tmp_path / "real" / "f").resolve()
    file = open_under(tmp_path / "root", "f")
    assert os.read(file, 10) == b"mine"
    os.close(file)


def test_a_link_planted_at_the_last_part_is_not_written_through(root: Path) -> None:
    with pytest.raises(UnsafePath, match="symbolic link"):
        open_under(root, "dangling", os.O_WRONLY | os.O_CREAT)
    assert not (root.parent / "outside" / "new").exists()


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # would block a plain open for ever
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(UnsafePath, match="regular file"):
            open_under(tmp_path, name)


def test_a_folder_swapped_for_a_link_during_the_walk_leads_nowhere(tmp_path: Path) -> None:
    """The race that a check before the use always loses: run it until both sides have had every chance."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("secret")
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "f").write_text("mine")
    (root / "trap").symlink_to(tmp_path / "outside")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for source in ("real", "trap"):
                os.rename(root / source, root / "d")  # noqa: PTH104
                os.rename(root / "d", root / source)  # noqa: PTH104

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(20_000):
            try:
                file = open_under(root, "d/f")
            except (UnsafePath, FileNotFoundError, NotADirectoryError) as error:
                seen.add(type(error).__name__)
                continue
            seen.add(os.read(file, 10).decode())
            os.close(file)
    finally:
        done.set()
        thread.join()
    assert "secret" not in seen
    assert "mine" in seen, "the race never happened"


def test_missing_folders_are_made_on_request_and_never_through_a_link(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), folder_under(tmp_path, "new/deep/f"):
        pass
    with folder_under(tmp_path, "new/deep/f", create=True) as (folder, name):
        assert name == "f"
        assert os.path.samestat(os.fstat(folder), (tmp_path / "new" / "deep").stat())
    with pytest.raises(UnsafePath), folder_under(root, "link/new/f", create=True):
        pass
    assert sorted(each.name for each in (root.parent / "outside").iterdir()) == ["secret"]


def test_no_descriptor_is_left_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for untrusted in ("a/b.pdf", "link/secret", "a/missing/f", "a/b.pdf/f", "a", "../x"):
        try:
            os.close(open_under(root, untrusted))
        except (UnsafePath, OSError):
            continue
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_new_file_is_private(tmp_path: Path) -> None:
    file = open_under(tmp_path, "f", os.O_WRONLY | os.O_CREAT)
    assert not stat.S_IMODE(os.fstat(file).st_mode) & 0o007
    os.close(file)


# Names for people


@given(PATHS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=500)
def test_a_safe_name_is_one_that_every_path_accepts(root: Path, filename: str) -> None:
    name = safe_name(filename)
    assert resolve_under(root, f"names/{name}").name == name
    assert safe_name(name) == name
    assert name.isprintable()
    assert not set(name) & set('/\\:*?"<>|')


@pytest.mark.parametrize(
    ("filename", "name"),
    [
        ("invoice.pdf", "invoice.pdf"),
        ("C:\\Users\\me\\Rechnung März.pdf", "Rechnung März.pdf"),
        ("../../etc/passwd", "passwd"),
        ("faktur pajak \u202efdp.exe", "faktur pajak fdp.exe"),
        ('a"b<c>.pdf', "a_b_c_.pdf"),
        (" .. ", "file"),
        ("", "file"),
        ("folder/", "folder"),
        ("con.pdf", "_con.pdf"),
        ("con" + " " * 300 + "x.pdf", "_con.pdf"),
        ("請求書.xlsx", "請求書.xlsx"),
        ("line\r\nSet-Cookie: x.pdf", "lineSet-Cookie_ x.pdf"),
        ("．．／x", "___x"),
        ("a\u3000b\u00a0.pdf", "a b .pdf"),
    ],
)
def test_a_safe_name_still_looks_like_the_given_one(filename: str, name: str) -> None:
    assert safe_name(filename) == name


@pytest.mark.parametrize("make", [lambda: "ä" * 500 + ".pdf", lambda: "a." + "b" * 500, lambda: "x" * 199 + ". .pdf"])
def test_a_long_name_is_cut_and_keeps_its_extension(make: Callable[[], str]) -> None:
    name = safe_name(make())
    assert len(name.encode()) <= 255
    assert unicodedata.is_normalized("NFC", name)
    if make().endswith(".pdf"):
        assert name.endswith(".pdf")
