"""The account that the server runs as. Postgres refuses to run as root, so root gives it an account of its own.

We take a user number without a name instead of `nobody`, because other programs that run as `nobody` could signal the
server and read its data. Nothing is added to the system; the owner of the data directory records the choice.
"""

from __future__ import annotations

import grp
import os
import pwd
import random
from dataclasses import dataclass
from pathlib import Path

from waybill_cli.local.postgres.errors import PostgresError

# systemd, Debian, Fedora and `useradd` do not assign these numbers, and a container's 65,536 numbers include them.
_FREE_NUMBERS = range(60578, 61184)


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group number to run as."""

    uid: int
    gid: int


def account_for(data: Path) -> Account | None:
    """The account for this data directory's server; None if the server can run as our own user."""
    if os.geteuid() != 0:
        return None
    if data.exists():
        owner = data.stat()
        if owner.st_uid == 0:
            raise PostgresError(f"{data} belongs to root, which Postgres refuses. Give it to another user: chown -R.")
        return Account(owner.st_uid, owner.st_gid)
    for number in random.sample(_FREE_NUMBERS, len(_FREE_NUMBERS)):
        if not _has_name(number):
            return Account(number, number)
    raise PostgresError("No free user number is left for Postgres. Run `waybill up` as an ordinary user.")


def named_account(account: Account) -> Account:
    """A user with a name, in our own group. `initdb` needs a name; the server does not."""
    try:
        return Account(pwd.getpwnam("nobody").pw_uid, account.gid)
    except KeyError:
        named = next((entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0), None)
    if named is None:
        raise PostgresError(
            "Postgres refuses to run as root, and this system has no other user. Run `waybill up` as an "
            "ordinary user, or set WAYBILL_DATABASE_URL to a Postgres server."
        )
    return Account(named, account.gid)


def _has_name(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        try:
            grp.getgrgid(number)
        except KeyError:
            return False
    return True
