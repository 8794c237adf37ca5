"""A message is a key and its parameters until somebody reads it, and English for who prints it."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import pytest

from waybill.messages import BadMessage, Message, in_english, msg


def test_a_message_is_said_in_english() -> None:
    assert str(msg("storage.full")) == "The disk is full. We'll retry automatically."
    assert str(msg("form.too_many_parts", number=1200)) == "The form has more than 1,200 parts."
    assert str(msg("api_key.permission", permission="a%b")) == "This API key does not have the permission 'a%b'."


def test_a_message_keeps_its_key_and_parameters() -> None:
    message = msg("form.too_many_parts", number=30)
    assert (message.key, message.params) == ("form.too_many_parts", {"number": 30})
    assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301 - our own


@pytest.mark.parametrize("message", [msg("no.such_key", a=1), msg("form.too_many_parts"), Message("errors")])
def test_a_mistake_is_an_error_in_tests_and_hides_nothing_in_production(message: Message) -> None:
    with pytest.raises(BadMessage, match=message.key):
        str(message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # production warns once and goes on
        assert str(message).startswith(message.key)


def test_stored_text_is_a_key_or_itself() -> None:
    assert in_english("errors.CANCELLED") == "This job was cancelled."
    assert in_english("Page 3 of 10") == "Page 3 of 10"
    assert in_english("form.too_many_parts") == "form.too_many_parts", "its parameter was not stored"


def test_english_needs_no_web_framework() -> None:
    code = (
        "import sys; from waybill.errors import NotFound; from waybill.messages import in_english; str(NotFound());"
        "in_english('convert.progress.converting');"
        "sys.exit(', '.join({'fastapi', 'jinja2', 'markupsafe', 'starlette'} & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
