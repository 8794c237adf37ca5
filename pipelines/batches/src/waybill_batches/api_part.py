"""What the pipeline brings to the API service: its routes and pages, and the services behind them."""

from waybill.web import ApiPart
from waybill_batches.api import batches, downloads, files, uploads
from waybill_batches.pages import batch_list, batch_page
from waybill_batches.web_context import adopt, open_services

PART = ApiPart(
    routers=(uploads.router, downloads.router, batches.router, files.router, batch_list.router, batch_page.router),
    services=open_services,
    large_bodies=frozenset({"/api/batches", "/batches"}),
    adopt=adopt,
)
