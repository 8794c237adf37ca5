"""The handlers this worker ships. Importing the package registers them."""

from waybill_worker.handlers import selftest

__all__ = ["selftest"]
