"""Waybill's shared library: what every service stands on.

Read it in the order a job meets it: `config` → `db` → `jobs` → `storage`; `errors`, `log` and `files` serve them all.
"""

__version__ = "0.2.0"
