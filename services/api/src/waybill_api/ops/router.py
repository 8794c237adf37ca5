"""The routes below `/ops`, in one router."""

from __future__ import annotations

from fastapi import APIRouter

from waybill_api.ops import actions, job_page, page

router = APIRouter(include_in_schema=False)
for _part in (page, job_page, actions):
    router.include_router(_part.router)
