"""How the batches pipeline forgets an owner or a tenant; see `waybill_engine.erasure`."""

from waybill_batches.repository import erasure
from waybill_engine.erasure import Eraser

ERASER = Eraser(jobs_of_owner=erasure.jobs_of_owner, remove=erasure.remove, remove_rest=erasure.remove_rest)
