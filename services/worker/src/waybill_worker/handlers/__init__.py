"""The handlers this worker ships. Importing the package registers them."""

from waybill_worker.handlers import convert, selftest

__all__ = ["convert", "selftest"]
