"""Labels: what the QR code says, read by an independent reader and checked with nothing but a public key."""

from __future__ import annotations

import io

import pytest
import zxingcpp
from PIL import Image

from waybill_passport import qr_image
from waybill_passport.digests import base32, from_base32, sha256
from waybill_passport.label import BadLabel, LabelLink, SeedLabel
from waybill_passport.signing_keys import SigningKey

HOST = "passport.example.com"
RECEIPT = sha256(b"receipt")
VERSION = "01a1f60b-a340-71f3-b954-3c13fe2c5d4f"


def decoded(picture: bytes) -> str:
    found = zxingcpp.read_barcodes(Image.open(io.BytesIO(picture)))
    assert len(found) == 1
    return str(found[0].text)


def test_a_label_is_read_and_checked_offline(key: SigningKey, other_key: SigningKey) -> None:
    text = LabelLink.sign(HOST, RECEIPT, key).text()
    read = LabelLink.parse(decoded(qr_image.png(text)))
    assert (read.host, read.receipt_hash, read.key_id) == (HOST.upper(), RECEIPT, key.id)
    assert read.is_signed_by(key.public)
    assert not read.is_signed_by(other_key.public)


def test_it_is_smaller_than_the_seed_which_has_no_signature(key: SigningKey) -> None:
    link = LabelLink.sign(HOST, RECEIPT, key).text()
    seed = SeedLabel(VERSION, RECEIPT, RECEIPT, RECEIPT).text()
    assert qr_image.version_of(link) <= 9
    assert qr_image.version_of(link) < qr_image.version_of(seed)


def test_the_seeds_text_is_read_too() -> None:
    label = SeedLabel(VERSION, sha256(b"p"), sha256(b"r"), RECEIPT)
    assert SeedLabel.parse(decoded(qr_image.png(label.text()))) == label
    assert label.text().startswith(f"BPC1|pv={VERSION}|ph=")


def test_a_reader_may_change_the_case(key: SigningKey) -> None:
    label = LabelLink.sign(HOST, RECEIPT, key)
    assert LabelLink.parse(f" {label.text().lower()}\n") == label


def test_every_changed_character_is_noticed(key: SigningKey) -> None:
    text = LabelLink.sign(HOST, RECEIPT, key).text()
    signed = text.index("/P/") + 3
    for at in range(signed, len(text)):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        try:
            found = LabelLink.parse(changed)
        except BadLabel:
            continue
        assert not found.is_signed_by(key.public) or found.key_id != key.id


@pytest.mark.parametrize("text", ["", "HTTPS://A/P/", "BPC1|pv=x", "HTTPS://EXAMPLE.COM/P/" + "A" * 171 + "9"])
def test_what_is_no_label_is_refused(text: str) -> None:
    for kind in (LabelLink, SeedLabel):
        with pytest.raises(BadLabel):
            kind.parse(text)


@pytest.mark.parametrize("host", ["", "exämple.com", "a/b", "a" * 80, "user@host"])
def test_a_host_that_cannot_stand_on_a_label_is_refused(key: SigningKey, host: str) -> None:
    with pytest.raises(BadLabel, match="cannot stand on a label"):
        LabelLink.sign(host, RECEIPT, key)


def test_base32_has_one_way_to_write_things() -> None:
    assert from_base32(base32(RECEIPT)) == RECEIPT
    for text in ("A", "MY", "MZ", "my", "1", base32(RECEIPT)[:-1] + "B"):
        if text == "MY":
            assert from_base32(text) == b"f"
            continue
        with pytest.raises(ValueError, match="base32"):
            from_base32(text)


def test_pictures_are_the_same_each_time_and_large_enough(key: SigningKey) -> None:
    text = LabelLink.sign(HOST, RECEIPT, key).text()
    assert qr_image.png(text) == qr_image.png(text)
    assert qr_image.svg(text) == qr_image.svg(text)
    for width in (200, 500, 1000):
        assert Image.open(io.BytesIO(qr_image.png(text, at_least=width))).width >= width
