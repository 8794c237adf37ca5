"""Checks untrusted file names, and turns them into safe ones.

The rules include those of Windows, because a name that is harmless here may be unpacked or downloaded there. `paths`
applies them before it accesses the disk.
"""

from __future__ import annotations

import unicodedata

from waybill.errors import UnsafePath

LONGEST_PATH = 1024
LONGEST_NAME = 255
"""Bytes. Common file systems allow no more."""

_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}
    | {f"{device}{number}" for device in ("COM", "LPT") for number in range(10)}
)
# Control and format characters (bidi overrides, zero-width), surrogates, private use, unassigned, line separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')


def parts_of(untrusted: str) -> tuple[str, ...]:
    """The parts of a relative path, in Unicode's composed form. Raises UnsafePath if a part is not safe."""
    if not untrusted:
        raise UnsafePath("A file name must not be empty.")
    if any(unicodedata.category(character) in _INVISIBLE for character in untrusted):
        raise _refused(untrusted, "has invisible characters in it")
    if untrusted.startswith("/"):
        raise _refused(untrusted, "must be relative")
    composed = unicodedata.normalize("NFC", untrusted)
    if len(composed.encode()) > LONGEST_PATH:
        raise _refused(untrusted, f"is longer than {LONGEST_PATH} bytes")
    parts = tuple(composed.split("/"))
    for part in parts:
        reason = _fault(part)
        if reason:
            raise _refused(untrusted, reason)
    return parts


def safe_name(filename: str) -> str:
    """Turn an untrusted file name into one that is safe to show and to download."""
    last = unicodedata.normalize("NFC", filename).replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = "".join(_harmless(character) for character in last)
    name = _no_device(unicodedata.normalize("NFC", name).strip(" ."))
    # Check again after shortening, which may produce a device's name.
    return _no_device(_shortened(name)) or "file"


def _fault(part: str) -> str | None:
    # Check compatibility forms too: `．．／` and `‥` become `../` and `..` when another program normalises them.
    for form in (part, unicodedata.normalize("NFKC", part)):
        if form in ("", ".", ".."):
            return "has an empty, '.' or '..' part"
        if "\\" in form or ":" in form or "/" in form:
            return "has a backslash, a colon or a disguised slash in it"
        if form[-1] in ". ":
            return "has a part that ends with a dot or a space"
        if _is_device(form):
            return "has a part that names a device on Windows"
    if len(part.encode()) > LONGEST_NAME:
        return f"has a part longer than {LONGEST_NAME} bytes"
    return None


def _is_device(name: str) -> bool:
    # Windows ignores everything from the first dot, and spaces before it.
    stem = unicodedata.normalize("NFKC", name).partition(".")[0].rstrip(" ")
    return stem.upper() in _DEVICES


def _no_device(name: str) -> str:
    return f"_{name}" if _is_device(name) else name


def _harmless(character: str) -> str:
    category = unicodedata.category(character)
    if category in _INVISIBLE:
        return ""
    if category == "Zs":
        return " "
    if character == ".":
        return character
    compatible = unicodedata.normalize("NFKC", character)
    return "_" if "." in compatible or _NOT_IN_NAMES.intersection(compatible) else character


def _shortened(name: str) -> str:
    """Shorten a name for file systems, leaving room for a prefix and keeping the extension."""
    most = LONGEST_NAME - 55
    if len(name.encode()) <= most:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = dot + extension if stem and len(extension.encode()) <= 20 else ""
    head = name.removesuffix(tail).encode()[: most - len(tail.encode())].decode(errors="ignore")
    return head.rstrip(" .") + tail


def _refused(untrusted: str, reason: str) -> UnsafePath:
    return UnsafePath(f"The file name {untrusted[:100]!r} {reason}. Please rename the file.")
