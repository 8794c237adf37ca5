"""Migrates a database with all branches that are installed: `python -m support.branch_migration URL PATIENCE`."""

from __future__ import annotations

import asyncio
import sys

from waybill import log
from waybill.config import ProcessSettings
from waybill.db.migrations import upgrade
from waybill.errors import WaybillError
from waybill.pipelines import installed


def main() -> None:
    url, patience = sys.argv[1:]
    installed.cache_clear()  # the process that was forked had looked before, and without what is installed here
    log.configure(ProcessSettings(log_format="console"), service="cli")
    try:
        asyncio.run(upgrade(url, patience=float(patience)))
    except WaybillError as error:
        print(error.message)
        sys.exit(1)


if __name__ == "__main__":
    main()
