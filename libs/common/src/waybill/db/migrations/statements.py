"""How a migration runs its SQL."""

from __future__ import annotations

from alembic import op


def execute(*scripts: str) -> None:
    """Run scripts in order. Statements are separated by semicolons; a function's body makes a script one statement."""
    for script in scripts:
        for statement in [script] if "$$" in script else script.split(";"):
            op.execute(statement)
