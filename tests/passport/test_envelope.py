"""Keys and envelopes: the vectors of RFC 8032 and DSSE, and every changed byte."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from waybill_passport.canonical import NotCanonical
from waybill_passport.envelope import BadEnvelope, Envelope, pre_authentication
from waybill_passport.signing_keys import BadKey, SigningKey, public_key, raw

KIND = "application/vnd.example"


def test_the_first_vectors_of_rfc_8032() -> None:
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    key = SigningKey.load(base64.b64encode(secret))
    assert raw(key.public).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert key.sign(b"").hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b"
    )


def test_what_is_signed_is_the_example_of_dsse() -> None:
    assert pre_authentication("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_an_envelope_comes_back_and_is_signed_by_its_key_only(key: SigningKey, other_key: SigningKey) -> None:
    envelope = Envelope.sign(KIND, b"payload", key)
    again = Envelope.parse(envelope.dump())
    assert again == envelope
    assert again.key_id == key.id
    assert again.is_signed_by(key.public)
    assert not again.is_signed_by(other_key.public)
    assert again.dump() == envelope.dump()


def test_a_signature_over_one_type_is_none_over_another(key: SigningKey) -> None:
    envelope = Envelope.sign(KIND, b"payload", key)
    assert not Envelope("other", envelope.payload, key.id, envelope.signature).is_signed_by(key.public)


def test_every_changed_byte_is_noticed(key: SigningKey) -> None:
    whole = Envelope.sign(KIND, b"payload", key).dump()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        try:
            found = Envelope.parse(bytes(changed))
        except (BadEnvelope, NotCanonical):
            continue
        # The name of the key is not signed: whoever checks chooses the key by it, and then has the wrong one.
        assert not found.is_signed_by(key.public) or found.key_id != key.id


@pytest.mark.parametrize(
    "text",
    [
        {},
        {"payloadType": "a", "payload": "YQ==", "signatures": []},
        {"payloadType": "a", "payload": "YQ==", "signatures": [{"keyid": "k", "sig": "not base64"}]},
        {"payloadType": "a", "payload": "YR==", "signatures": [{"keyid": "k", "sig": "YQ=="}]},
        {"payloadType": "a", "payload": "YQ==", "signatures": [{"keyid": 1, "sig": "YQ=="}]},
    ],
)
def test_what_is_no_envelope_is_refused(text: object) -> None:
    with pytest.raises(BadEnvelope):
        Envelope.parse(json.dumps(text).encode())


def test_keys_are_read_in_every_form(key: SigningKey) -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    der = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    for form in (pem, base64.b64encode(pem), base64.b64encode(der), base64.encodebytes(bytes(range(32)))):
        assert SigningKey.load(form).id == key.id
    assert public_key(raw(key.public)) == key.public
    assert repr(key) == f"SigningKey({key.id})"


def test_what_is_no_key_is_refused_without_repeating_it() -> None:
    curve = ec.generate_private_key(ec.SECP256R1())
    foreign = curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for form in (b"", b"secret!", base64.b64encode(b"short"), foreign, b"-----BEGIN PRIVATE KEY-----\nAAAA\n"):
        with pytest.raises(BadKey) as refused:
            SigningKey.load(form)
        assert "secret" not in str(refused.value)
    with pytest.raises(BadKey):
        public_key(b"short")
