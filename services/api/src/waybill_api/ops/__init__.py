"""`/ops`: the page of admins. It says whether everything is well, shows what waits, runs and failed, and acts on it.

`facts` reads, `health` judges, `last_hour` and `timeline` draw with `plots`, `page` and `job_page` show, and `actions`
changes things.
"""

from waybill_api.ops.router import router

__all__ = ["router"]
