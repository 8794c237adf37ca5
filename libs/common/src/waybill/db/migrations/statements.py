"""How a migration runs its SQL."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

_LIMITS = """
SET LOCAL lock_timeout = '1s';
SET LOCAL statement_timeout = 0
"""
_WROTE = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"
_IS_VALID = """
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)
"""


def execute(*scripts: str) -> None:
    """Run scripts in order. Statements are separated by semicolons; a function's body makes a script one statement."""
    for script in scripts:
        for statement in [script] if "$$" in script else script.split(";"):
            op.execute(statement)


def create_index(name: str, definition: str, *, unique: bool = False) -> None:
    """Make an index on a table that may be big, while others go on writing to it.

    `definition` is what follows the name: `ON jobs (parent_id) WHERE parent_id IS NOT NULL`. It cannot be part of a
    transaction, so it must be the first thing that a revision does: what came before it would be committed without the
    revision, and repeated by the next run. An index that an interrupted run left half made is made anew.
    """
    context = op.get_context()
    if op.get_bind().scalar(text(_WROTE)):
        raise RuntimeError(f"create_index({name!r}) must be the first thing that its revision does")
    with context.autocommit_block():
        valid = op.get_bind().scalar(text(_IS_VALID), {"name": name})
        if valid is False:
            op.execute(f"DROP INDEX CONCURRENTLY {name}")
        if not valid:
            op.execute(f"CREATE {'UNIQUE ' if unique else ''}INDEX CONCURRENTLY {name} {definition}")
    limit_lock_waits()


def limit_lock_waits() -> None:
    """Wait for no lock longer than a second, until this transaction ends. The runner begins each revision with it."""
    execute(_LIMITS)
