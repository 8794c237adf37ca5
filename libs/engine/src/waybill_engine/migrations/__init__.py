"""The engine's branch of the schema: its revisions lie in this folder, in the order of their names."""

from waybill.db.branches import Branch

BRANCH = Branch(
    "engine",
    migrations="waybill_engine.migrations",
    models=(
        "waybill_engine.models",
        "waybill_engine.breaker_models",
        "waybill_engine.limit_models",
        "waybill_engine.schedule_models",
        "waybill_engine.shelf_models",
        "waybill_engine.sample_models",
    ),
)
