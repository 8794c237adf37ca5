"""What the library's tests share."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is slow, not wrong: what must be fast has a test of its own.
settings.register_profile("waybill", deadline=None)
settings.load_profile("waybill")
