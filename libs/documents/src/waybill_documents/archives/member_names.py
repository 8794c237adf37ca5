"""The names of members: decoded from bytes of unknown encoding, and refused if they could mean another place.

Nothing is ever written under such a name. It is a label, which people see and which another program may use as a path
when it unpacks our results.
"""

from __future__ import annotations

import re

from waybill_documents.messages import DocumentMessage

LONGEST = 1000
"""Characters of a path, with the names of the ZIPs that it is in."""
MOST_NAME_BYTES = 4 * (LONGEST + 1)
_UTF_8 = 0x800
_DRIVE = re.compile(r"[A-Za-z]:")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
"""Control characters, line ends, marks that change the direction of a text, and what is no character at all."""


def decoded(raw: bytes, flags: int) -> str:
    """The name. Programs that write UTF-8 often forget to say so; everything else is the encoding of DOS."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        # Only a name that is too long anyway was cut, perhaps within a character.
        return raw.decode("utf-8", "replace") if flags & _UTF_8 and len(raw) == MOST_NAME_BYTES else raw.decode("cp437")


def fault_of(name: str) -> DocumentMessage | None:
    """What is wrong with a name, if anything is."""
    if not name.strip():
        return DocumentMessage("member.no_name")
    if _UNSEEN.search(name):
        return DocumentMessage("member.unseen_characters")
    if "\\" in name:
        return DocumentMessage("member.backslash")
    if name.startswith("/") or _DRIVE.match(name):
        return DocumentMessage("member.absolute")
    if ".." in name.split("/"):
        return DocumentMessage("member.outside")
    return None


def shown(name: str) -> str:
    """A name that was refused, as it can be shown."""
    return _UNSEEN.sub("\ufffd", name[:LONGEST])
