"""Landlock: the kernel restricts a parser to the files it needs, and denies it the network.

It needs Linux 5.13, and 6.7 for the network. The standard library has no wrapper for it, but three system calls are
enough. On a kernel without Landlock a parser runs without it; its resource limits still hold.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

# The numbers are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_FILE, _TRUNCATE = 1 << 5, 1 << 8, 1 << 14
_READ = _READ_FILE | _READ_DIR
_WRITE = _WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | _TRUNCATE
_OF_FILES = _READ_FILE | _WRITE_FILE | _TRUNCATE  # the rights that apply to a single file

# How many rights each version of the interface has, starting with version 1.
_FILE_RIGHTS = (13, 14, 15, 15, 16)
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract Unix sockets and signals of other processes


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def confine(*, readable: Iterable[Path], writable: Iterable[Path]) -> int:
    """Allow reading and writing below these folders only. Returns the interface's version, or 0 if there is none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version = int(libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))
    if version < 1:
        return 0
    known = (1 << _FILE_RIGHTS[min(version, len(_FILE_RIGHTS)) - 1]) - 1
    rules = _Ruleset(known, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = int(libc.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0))
    if ruleset < 0:
        return 0
    try:
        for folder in readable:
            _allow(libc, ruleset, folder, _READ & known)
        for folder in writable:
            _allow(libc, ruleset, folder, (_READ | _WRITE) & known)
        # This needs PR_SET_NO_NEW_PRIVS, which `limits` has set.
        return version if libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it does not exist, so it needs no rule
    try:
        if not path.is_dir():
            rights &= _OF_FILES
        rule = _PathBeneath(rights, opened)
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)
