"""The `waybill` command, against a real Postgres."""

from support.command_line import bare, elsewhere, executable, hot, process, waybill

__all__ = ["bare", "elsewhere", "executable", "hot", "process", "waybill"]
