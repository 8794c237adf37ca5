"""The gateway as a program, with another function to parse documents if its first argument names one."""

from __future__ import annotations

import sys

from waybill_gateway.__main__ import main

if __name__ == "__main__":
    main(*sys.argv[1:])
