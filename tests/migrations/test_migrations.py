"""The migrations make exactly the schema the models describe, from empty and from every earlier release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.db.migrations import upgrade
from waybill.db.models import compare_type, metadata


async def test_migrated_from_empty_the_schema_is_what_the_models_describe(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    db = Database(DatabaseUrl(empty_database_url))

    def differences(connection: sa.Connection) -> list[object]:
        context = MigrationContext.configure(
            connection, opts={"compare_type": compare_type, "compare_server_default": True}
        )
        return list(compare_metadata(context, metadata))

    async with db.engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await db.close()
