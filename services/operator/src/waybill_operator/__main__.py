"""`python -m waybill_operator` keeps worker pools until it is stopped; `… uninstall` removes them, and exits."""

from __future__ import annotations

import argparse

from waybill_operator import program, uninstall


def main() -> None:
    parser = argparse.ArgumentParser(prog="waybill_operator", description="Keeps worker pools.")
    parser.add_argument(
        "command",
        nargs="?",
        choices=["run", "uninstall"],
        default="run",
        help="`uninstall` drains and removes every pool of this release, and exits",
    )
    if parser.parse_args().command == "uninstall":
        uninstall.run()
    program.run()


if __name__ == "__main__":
    main()
