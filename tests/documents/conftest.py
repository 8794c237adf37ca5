"""What the document tests share."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import settings
from reportlab.pdfgen.canvas import Canvas

# A busy machine is slow, not wrong: what must be fast has a test of its own.
# The same examples every time: what is new is looked for in `make test-heavy` and not by whoever happens to run CI.
settings.register_profile("waybill", deadline=None, derandomize=True)
settings.load_profile("waybill")


@pytest.fixture(scope="session")
def hello_pdf() -> bytes:
    """A PDF that is no invoice."""
    return _printed("Hello, this is a letter and not an invoice.")


@pytest.fixture(scope="session")
def blank_pdf() -> bytes:
    """A PDF without a word on its page, like a scan."""
    return _printed("")


def _printed(text: str) -> bytes:
    buffer = BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(72, 700, text)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()
