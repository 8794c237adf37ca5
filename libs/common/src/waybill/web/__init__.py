"""What every pipeline's routes and pages are built from: visitors, guards, live streams, layout.

A pipeline lists its routes and services in an `ApiPart`, and `waybill_api` puts all parts into one application.
"""

from waybill.web.context import ApiPart, Context, context_of

__all__ = ["ApiPart", "Context", "context_of"]
