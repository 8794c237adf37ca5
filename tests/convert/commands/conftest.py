"""The convert pipeline's commands, through `waybill`."""

from support.command_line import bare, elsewhere, executable, hot, waybill

__all__ = ["bare", "elsewhere", "executable", "hot", "waybill"]
