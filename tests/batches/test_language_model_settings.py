"""What an operator may write, and that the key shows nowhere."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from waybill_batches.language_model_settings import LanguageModelSettings

KEY = "sk-9d81bb2c"


def test_it_is_off_unless_somebody_sets_it_up() -> None:
    assert LanguageModelSettings.model_validate({}).llm_url is None


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
        (" https://api.example.com/v1/ ", "https://api.example.com/v1"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1"),
    ],
)
def test_the_base_url_is_found(given: str, meant: str) -> None:
    assert LanguageModelSettings.model_validate({"llm_url": given, "llm_model": "m"}).llm_url == meant


@pytest.mark.parametrize(
    "wrong",
    [
        {"llm_url": "api.example.com"},
        {"llm_url": "ftp://api.example.com"},
        {"llm_url": "https://user:pw@api.example.com/v1"},
        {"llm_url": "https://api.example.com/v1?key=x"},
        {"llm_url": "https://api example.com"},
        {"llm_url": "https://[::1/v1"},
        {"llm_model": " "},
        {"llm_key": "two words"},
        {"llm_key": "a\r\nX-Other: b"},
        {"llm_key": "ключ"},
        {"llm_price_in": "inf"},
        {"llm_timeout": "0"},
    ],
)
def test_what_cannot_work_is_refused_at_the_start(wrong: dict[str, str]) -> None:
    right = {"llm_url": "https://api.example.com/v1", "llm_model": "m", "llm_key": KEY}
    LanguageModelSettings.model_validate(right)
    with pytest.raises(ValidationError):
        LanguageModelSettings.model_validate({**right, **wrong})


def test_the_key_is_not_shown() -> None:
    settings = LanguageModelSettings.model_validate({"llm_key": KEY})
    assert KEY not in repr(settings)
    assert KEY not in settings.model_dump_json()
