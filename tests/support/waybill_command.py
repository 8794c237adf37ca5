"""The `waybill` command for processes that are forked: `python -m support.waybill_command ARGUMENTS`."""

from waybill_cli.main import main

if __name__ == "__main__":
    main()
