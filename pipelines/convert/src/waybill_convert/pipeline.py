"""What the convert pipeline brings to each service. Follow a document from here: api -> kinds -> handlers -> pages."""

from waybill.pipelines import Pipeline

PIPELINE = Pipeline(
    name="convert",
    kinds="waybill_convert.kinds:KINDS",
    handlers="waybill_convert.handlers",
    models=("waybill_convert.models", "waybill_convert.revision_models", "waybill_convert.mapping_models"),
    migrations="waybill_convert.migrations",
    api="waybill_convert.api_part:PART",
    pages="waybill_convert.pages",
    navigation=(("/", "convert.navigation.upload"), ("/queue", "convert.navigation.queue")),
    landing="/queue",
    retention="waybill_convert.retention:RETENTION",
    erasure="waybill_convert.erasure:ERASER",
    commands={
        "submit": "waybill_convert.commands.submit.command:submit",
        "mapping": "waybill_convert.commands.mapping:app",
    },
    tenant_commands={"review": "waybill_convert.commands.tenant_review:review"},
    job_facts="waybill_convert.job_facts:job_facts",
    settings=("waybill_convert.settings:ConvertSettings",),
    check="waybill_convert.clients.gateway_check:check_gateway",
    permissions={
        "convert:read": "see and download conversions",
        "convert:write": "upload, correct, retry, cancel and delete conversions",
        "mappings:read": "read the tenant's mappings and their samples",
        "mappings:write": "write, test, publish and retire the tenant's mappings",
    },
    visitor_permissions=("convert:read", "convert:write"),
)
