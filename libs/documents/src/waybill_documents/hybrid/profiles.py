"""The profiles of Factur-X / ZUGFeRD and their schemas.

These schemas come with the drafthorse package. We only look up its folder, because importing the package would load its
whole object model.
"""

from __future__ import annotations

import functools
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from waybill_documents.xml_output.validation import XmlSchema, load_schema

_VERSION = "1.0.07"


class Profile(StrEnum):
    """How detailed an invoice is, from MINIMUM to EXTENDED. The value is part of the schema's file name."""

    MINIMUM = "MINIMUM"
    BASIC_WL = "BASICWL"
    BASIC = "BASIC"
    EN16931 = "EN16931"
    EXTENDED = "EXTENDED"


def profile_of(guideline: str) -> Profile:
    """The profile that a guideline (BT-24) names.

    A guideline outside Factur-X is a national use of EN 16931, such as XRechnung, or an extension of it. Unknown ones
    are also validated by the EN 16931 schema, which then reports what does not fit.
    """
    name = guideline.lower()
    last = name.rpartition(":")[2]
    if last == "minimum":
        return Profile.MINIMUM
    if last == "basicwl":
        return Profile.BASIC_WL
    if last == "basic":
        return Profile.BASIC
    if last == "extended" or "extension" in name:
        return Profile.EXTENDED
    return Profile.EN16931


@functools.cache
def schema_of(profile: Profile) -> XmlSchema:
    """The compiled schema. Compiling takes tens of milliseconds, so each process does it once."""
    found = find_spec("drafthorse")
    if found is None or found.origin is None:
        raise RuntimeError("the package drafthorse, which holds the schemas of Factur-X, is not installed")
    folder = Path(found.origin).parent / "schema"
    name = f"Factur-X_{_VERSION}_{profile.value}.xsd"
    return load_schema((folder / name).read_bytes(), beside=folder, name=name)
