"""What the pipeline brings to the API service: its routes and pages, and the services behind them."""

from waybill.web import ApiPart
from waybill_convert.api import admin, attachments, downloads, jobs, mappings, revisions, stream, uploads
from waybill_convert.mapping_schemas import MOST_PUSH_BYTES
from waybill_convert.pages import queue, review, upload
from waybill_convert.revision_schemas import MOST_CORRECTION_BYTES
from waybill_convert.sample_form import MOST_FORM_BYTES
from waybill_convert.web_context import adopt, check, open_services

PART = ApiPart(
    # Downloads come before jobs: in `/api/jobs/download`, "download" is not an id.
    routers=(
        uploads.router,
        mappings.router,
        downloads.router,
        jobs.router,
        revisions.router,
        attachments.router,
        stream.router,
        admin.router,
        upload.router,
        queue.router,
        review.router,
    ),
    services=open_services,
    large_bodies=frozenset({"/api/upload", "/api/uploads", "/"}),
    body_limits={
        "/api/jobs/{job_id}/revisions": MOST_CORRECTION_BYTES,
        "/api/mappings": MOST_PUSH_BYTES,
        "/api/mappings/{name}": MOST_PUSH_BYTES,
        "/api/mappings/{name}/samples": MOST_FORM_BYTES,
        "/review/{job_id}": MOST_CORRECTION_BYTES,
        "/review/{job_id}/check": MOST_CORRECTION_BYTES,
    },
    adopt=adopt,
    check=check,
)
