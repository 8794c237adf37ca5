"""Postgres: connecting to it, the two ways to talk to it, and keeping its schema current."""

from waybill.db.database import Database, driver
from waybill.db.schema import SchemaMismatch, check_schema

__all__ = ["Database", "SchemaMismatch", "check_schema", "driver"]
