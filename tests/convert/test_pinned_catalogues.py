"""What a job with `auto` is pinned to: the same for the same mappings, and only ever its own tenant's."""

from __future__ import annotations

import json
import random

import pytest

from waybill.db.database import Connection
from waybill.errors import BadMapping
from waybill_convert.mapping_catalogue import MappingCatalogue, MappingChoice, MappingOrigin
from waybill_convert.pinned_catalogues import (
    MOST_CANDIDATES,
    AutoChoice,
    CatalogueCache,
    PinnedCatalogue,
)
from waybill_convert.repository import mapping_catalogues, mappings
from waybill_documents.mapping_files import MappingFiles

OWN = MappingFiles('{"name": "acme_v1"}', {"a.xsd": "<x/>"})


def choice(name: str, sha256: str = "0" * 64, origin: MappingOrigin = MappingOrigin.OWN) -> MappingChoice:
    return MappingChoice(name, name, sha256, origin, False)


def test_it_depends_on_the_mappings_and_not_on_their_order() -> None:
    choices = [choice(f"m{number}_v1") for number in range(20)]
    shuffled = random.Random(7).sample(choices, 20)
    one, other = PinnedCatalogue.of(choices), PinnedCatalogue.of(shuffled)
    assert one.sha256 == other.sha256
    assert PinnedCatalogue.from_json(one.to_json()) == one
    newer = PinnedCatalogue.of([*choices[1:], choice("m0_v1", "1" * 64)])
    assert newer.sha256 != one.sha256
    assert newer.has("m0_v1", "1" * 64)
    assert not newer.has("m0_v1", "0" * 64)


async def test_more_than_the_gateway_takes_are_refused(hot: Connection) -> None:
    many = AutoChoice.among([choice(f"m{number}_v1") for number in range(MOST_CANDIDATES + 1)])
    with pytest.raises(BadMapping, match="301 mappings"):
        await many.pin(hot)


async def publish(connection: Connection, tenant: str, files: MappingFiles = OWN) -> None:
    assert await mappings.put(connection, tenant, "acme_v1", "Acme", False, files, "test")
    await connection.execute("UPDATE mappings SET state = 'published', published_at = now() WHERE tenant = $1", tenant)


async def test_the_gateway_gets_a_tenants_own_with_their_files_and_the_shipped_by_hash(hot: Connection) -> None:
    await publish(hot, "acme")
    catalogue = MappingCatalogue()
    auto = AutoChoice.among((await catalogue.choices(hot, "acme")).values())
    await auto.pin(hot)
    fields = CatalogueCache()
    found = await fields.get(hot, catalogue, "acme", auto.sha256)
    sent = {each.pop("name"): each for each in json.loads(found.field)}
    assert sent["acme_v1"] == {"sha256": OWN.sha256, "document": OWN.document, "schemas": {"a.xsd": "<x/>"}}
    assert sent["oyo_v1"] == {"sha256": catalogue.installed["oyo_v1"].sha256}
    # A retired mapping is still what the job was pinned to, and nothing is read again.
    await hot.execute("UPDATE mappings SET state = 'retired', retired_at = now()")
    assert await CatalogueCache().get(hot, catalogue, "acme", auto.sha256) == found
    assert await fields.get(hot, catalogue, "acme", auto.sha256) is found


async def test_another_tenant_gets_nothing_by_the_hash(hot: Connection) -> None:
    await publish(hot, "acme")
    catalogue = MappingCatalogue()
    auto = AutoChoice.among((await catalogue.choices(hot, "acme")).values())
    await auto.pin(hot)
    fields = CatalogueCache()
    await fields.get(hot, catalogue, "acme", auto.sha256)
    with pytest.raises(BadMapping):
        await fields.get(hot, catalogue, "other", auto.sha256)
    with pytest.raises(BadMapping):
        await fields.get(hot, catalogue, "acme", "f" * 64)


async def test_what_no_job_names_is_removed_after_a_day(hot: Connection) -> None:
    kept, unused, fresh = "1" * 64, "2" * 64, "3" * 64
    for sha256 in (kept, unused, fresh):
        await mapping_catalogues.pin(hot, sha256, "[]")
    await hot.execute(
        "INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, mapping_sha256,"
        " upload_key) VALUES (gen_random_uuid(), 't', 'o', 'a', 1, '', 'auto', $1, 'k')",
        kept,
    )
    await hot.execute("UPDATE mapping_catalogues SET used_at = now() - interval '2 days' WHERE sha256 <> $1", fresh)
    assert await mapping_catalogues.unused(hot, "", 10) == [unused]
    await mapping_catalogues.pin(hot, unused, "[]")  # somebody uploads with it just then
    assert await mapping_catalogues.remove(hot, [kept, unused, fresh]) == 0
    await hot.execute("UPDATE mapping_catalogues SET used_at = now() - interval '2 days'")
    assert await mapping_catalogues.remove(hot, [kept, unused, fresh]) == 2
    assert await mapping_catalogues.get(hot, kept) == "[]"
