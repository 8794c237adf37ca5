"""What the batches pipeline brings to each service. Follow a ZIP from here: api -> kinds -> handlers -> pages."""

from waybill.pipelines import Pipeline

PIPELINE = Pipeline(
    name="batches",
    kinds="waybill_batches.kinds:KINDS",
    handlers="waybill_batches.handlers",
    models=("waybill_batches.models",),
    migrations="waybill_batches.migrations",
    api="waybill_batches.api_part:PART",
    pages="waybill_batches.pages",
    navigation=(("/batches", "batches.navigation.batches"),),
    retention="waybill_batches.retention:RETENTION",
    erasure="waybill_batches.erasure:ERASER",
    listener="waybill_batches.listener:hear",
    commands={"batch": "waybill_batches.commands:app"},
    settings=(
        "waybill_batches.language_model_settings:LanguageModelSettings",
        "waybill_batches.settings:BatchSettings",
    ),
    permissions={
        "batches:read": "see and download batches",
        "batches:write": "upload, retry, cancel and delete batches",
    },
    visitor_permissions=("batches:read", "batches:write"),
)
