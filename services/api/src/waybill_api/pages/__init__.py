"""The pages: what a person sees. They call the same services as the API, and work without a script.

`upload` is `/`, `queue` is `/queue`, `review` is `/review/{id}`, `account` signs in and out. `rows`, `reviewing` (with
`reviewed`, `paper` and `history`) and `languages` choose what is said, `templates` where it stands, `static/style.css`
how it looks. `problems` gives people pages where programs get documents.
"""

from __future__ import annotations

from fastapi import FastAPI

from waybill_api.pages import account, queue, review, static, upload
from waybill_api.pages.problems import ProblemPages

__all__ = ["ProblemPages", "install"]


def install(app: FastAPI) -> None:
    for router in (upload.router, queue.router, review.router, account.router, static.router):
        app.include_router(router)
