"""The root of the command tree: loads a command's module when it is called for, and turns errors into exit codes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from waybill.console.exits import understand
from waybill.console.terminal import complain, remark

if TYPE_CHECKING:
    # Typer exports neither; both are what its own methods take and return.
    from typer._click import Command, Context

COMMANDS = {
    "up": "waybill_cli.local.command:up",
    "submit": "waybill_convert.commands.submit.command:submit",
    "jobs": "waybill_cli.jobs:app",
    "schedules": "waybill_cli.schedules:app",
    "queue": "waybill_cli.queues:app",
    "dlq": "waybill_cli.dlq:app",
    "breaker": "waybill_cli.breakers:app",
    "tenant": "waybill_cli.tenants:app",
    "apikey": "waybill_cli.apikeys:app",
    "caps": "waybill_cli.caps:app",
    "workers": "waybill_cli.workers:app",
    "janitor": "waybill_cli.janitor:app",
    "storage": "waybill_cli.storage:app",
    "mapping": "waybill_convert.commands.mapping:app",
    "migrate": "waybill_cli.migrate:migrate",
    "selftest": "waybill_cli.selftest:selftest",
    "config": "waybill_cli.config:app",
    "version": "waybill_cli.version:version",
}
"""In the order of the help: from starting it to looking after it. A Typer app is a group, a function a command."""


class CommandGroup(TyperGroup):
    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        # A name we do not know: load all, because Typer suggests from what is loaded.
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                self.commands[name] = _load(name)
        return self.commands.get(cmd_name)

    def invoke(self, ctx: Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            remark("Interrupted.")
            raise typer.Exit(130) from None
        except Exception as error:
            understood = understand(error)
            if understood is None:
                raise
            code, sentence = understood
            complain(sentence)
            raise typer.Exit(code) from error


def _load(name: str) -> Command:
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        command: Command = get_group(found)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command()(found)
        command = get_command(single)
    command.name = name
    return command
