"""Writes numbered lines to a log that others write to as well: `python -m support.shared_log FILE WRITER COUNT`."""

from __future__ import annotations

import json
import logging
import string
import sys
from pathlib import Path

from waybill.log.handlers import RotatingFile


def main() -> None:
    path, writer, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    handler = RotatingFile(path, max_bytes=2_000, backups=1000)
    for number in range(count):
        message = json.dumps({"writer": writer, "number": number, "padding": string.ascii_letters * (number % 5)})
        handler.handle(logging.LogRecord("x", logging.INFO, "", 0, message, (), None))
    handler.close()


if __name__ == "__main__":
    main()
