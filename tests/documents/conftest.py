"""Fixtures and settings of the document tests."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import settings
from reportlab.pdfgen.canvas import Canvas

# No deadline, because a busy machine is slow; speed has tests of its own. The examples are the same in every run;
# `make test-heavy` looks for new ones.
settings.register_profile("waybill", deadline=None, derandomize=True)
settings.load_profile("waybill")


@pytest.fixture(scope="session")
def hello_pdf() -> bytes:
    """A PDF that is not an invoice."""
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
