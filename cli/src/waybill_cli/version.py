"""`waybill version`: prints the versions of Waybill and Python."""

from __future__ import annotations

import platform

import waybill
from waybill.console.options import AsJson
from waybill.console.terminal import print_json, print_line


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"waybill": waybill.__version__, "python": platform.python_version()})
    else:
        print_line(f"Waybill {waybill.__version__} (Python {platform.python_version()})")
