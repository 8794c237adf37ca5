"""Importing this module loads what every review needs: the page's templates, and the mappings that are shipped.

The side processes of `review_desk` are forked from a process that has imported it, so that none of them spends a tenth
of a second on its first page.
"""

from __future__ import annotations

from waybill.web.layout import prepare_templates
from waybill_convert.review_work import reviser_of
from waybill_documents.catalogue import names

prepare_templates("convert/review")
reviser_of(None).prepare(names())
