"""The root of the command tree: loads a command's module when it is called, and turns errors into exit codes.

The platform's commands are listed here; the others come from the pipelines that are installed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from waybill.console.exits import understand
from waybill.console.terminal import complain, remark
from waybill.pipelines import installed, resolve

if TYPE_CHECKING:
    # Typer exports neither; both are what its own methods take and return.
    from typer._click import Command, Context

_FIRST = {"up": "waybill_cli.local.command:up"}
_PLATFORM = {
    "jobs": "waybill_cli.jobs:app",
    "schedules": "waybill_cli.schedules:app",
    "queue": "waybill_cli.queues:app",
    "dlq": "waybill_cli.dlq:app",
    "breaker": "waybill_cli.breakers:app",
    "tenant": "waybill_cli.tenants:app",
    "apikey": "waybill_cli.apikeys:app",
    "caps": "waybill_cli.caps:app",
    "rates": "waybill_cli.rates:app",
    "workers": "waybill_cli.workers:app",
    "janitor": "waybill_cli.janitor:app",
    "storage": "waybill_cli.storage:app",
    "backup": "waybill_cli.backup:app",
    "restore": "waybill_cli.backup.restore:restore",
    "audit": "waybill_cli.audit:app",
    "rules": "waybill_cli.rules:app",
    "migrate": "waybill_cli.migrate:migrate",
    "selftest": "waybill_cli.selftest:selftest",
    "config": "waybill_cli.config:app",
    "monitoring": "waybill_cli.monitoring:app",
    "version": "waybill_cli.version:version",
}


@cache
def commands() -> dict[str, str]:
    """Every command and the reference that loads it: a Typer app is a group, a function is a command.

    The order is that of the help: starting Waybill, using its pipelines, operating it. A pipeline cannot replace one of
    the platform's commands.
    """
    brought = {name: reference for pipeline in installed() for name, reference in pipeline.commands.items()}
    return {**_FIRST, **brought, **_PLATFORM, **_FIRST}


class CommandGroup(TyperGroup):
    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002
        return list(commands())

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        # For an unknown name we load all commands, because Typer takes its suggestions from those that are loaded.
        for name in [cmd_name] if cmd_name in commands() else commands():
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
    found = resolve(commands()[name])
    if isinstance(found, typer.Typer):
        command: Command = get_group(found)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command()(found)
        command = get_command(single)
    command.name = name
    return command
