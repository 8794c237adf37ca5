"""Secrets: made by the chart where nobody brings them, random, and kept when the release goes."""

from __future__ import annotations

import re

import pytest

from support.chart import MATRIX, Installation, Render, secret_references
from waybill.db.database import Connection
from waybill.security import ADMIN, keys


def test_what_is_made_is_random_and_long(render: Render) -> None:
    one, other = render(), render()
    for name, key in (
        ("prod-waybill-secrets", "session-secret"),
        ("prod-waybill-secrets", "gateway-secret"),
        ("prod-waybill-secrets", "audit-secret"),
        ("prod-waybill-database", "password"),
    ):
        made = [rendered.secret(name, key) for rendered in (one, other)]
        assert all(re.fullmatch("[A-Za-z0-9]{40,}", each) for each in made)
        assert made[0] != made[1]
    assert len(set(map(str, one.one("Secret", "prod-waybill-secrets")["data"].values()))) == 3


async def test_the_first_admin_key_is_one_that_waybill_registers(installation: Installation, connect: object) -> None:
    text = installation("minimal").secret("prod-waybill-admin-key", "api-key")
    assert keys.parse(text) is not None
    connection: Connection = await connect()  # type: ignore[operator]
    await keys.ensure(connection, text, tenant="admin", name="first admin key", permissions=[ADMIN])
    assert (await keys.verify(connection, text)).permissions == {ADMIN}


def test_what_would_be_missed_stays_when_the_release_is_removed(installation: Installation) -> None:
    rendered = installation("minimal")
    kept = {
        (one["kind"], one["metadata"]["name"])
        for one in rendered.objects
        if (one["metadata"].get("annotations") or {}).get("helm.sh/resource-policy") == "keep"
        and one["kind"] != "CustomResourceDefinition"
    }
    assert kept == {
        ("Secret", "prod-waybill-admin-key"),
        ("Secret", "prod-waybill-database"),
        ("Secret", "prod-waybill-secrets"),
        ("PersistentVolumeClaim", "prod-waybill-storage"),
    }


@pytest.mark.parametrize("name", MATRIX)
def test_one_rendering_uses_one_password(installation: Installation, name: str) -> None:
    rendered = installation(name)
    if "password" in rendered.of("Secret").get("prod-waybill-database", {}).get("data", {}):
        password = rendered.secret("prod-waybill-database", "password")
        assert rendered.secret("prod-waybill-database", "url") == (
            f"postgresql://waybill:{password}@prod-waybill-postgres.papers:5432/waybill"
        )


def test_secrets_of_ones_own_are_used_and_none_is_made(installation: Installation) -> None:
    rendered = installation("secrets of one's own")
    assert set(rendered.of("Secret")) == {"prod-waybill-database", "prod-waybill-operator-tls"}
    read = {reference for pod in rendered.pods for reference in secret_references(pod)}
    assert {("mine", "gw"), ("mine", "session-secret"), ("mine", "audit-secret"), ("mine", "admin")} <= read
    external = installation("HA")
    assert "prod-waybill-database" not in external.of("Secret")
    read = {reference for pod in external.pods for reference in secret_references(pod)}
    assert {("my-database", "uri"), ("my-bucket", "key-id"), ("my-bucket", "secret")} <= read


def test_no_secret_is_written_anywhere_but_into_secrets(installation: Installation) -> None:
    for name in ("minimal", "address of a database", "Azure with a key"):
        rendered = installation(name)
        values = {
            rendered.secret(secret, key)
            for secret, one in rendered.of("Secret").items()
            for key in one["data"]
            if key not in ("ca.crt", "key-id")
        }
        others = str([one for one in rendered.objects if one["kind"] != "Secret"])
        assert not [value for value in values if value in others]


def test_a_weak_password_cannot_be_guessed_from_the_checksum(render: Render) -> None:
    """With nothing random beside it, there is no checksum."""
    database = {"postgres": {"enabled": False}, "database": {"url": "postgresql://waybill:1234@db/waybill"}}
    weak = render({**database, "secrets": {"existingSecret": "mine"}})
    assert not [pod for pod in weak.pods if "checksum/secrets" in (pod.metadata.get("annotations") or {})]
    assert render(database).pods_of("api")[0].metadata["annotations"]["checksum/secrets"]
