"""A handler with a schedule of its own, for workers that declare it at their start."""

from __future__ import annotations

from support.handlers import EFFECT
from waybill_engine import Schedule, declares

HOURLY = declares(Schedule("hourly", EFFECT, "0 * * * *", tenant="acme", payload={"note": "hourly"}))
