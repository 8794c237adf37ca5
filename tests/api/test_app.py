"""The application is composed from what the installed pipelines bring."""

from __future__ import annotations

import subprocess
import sys


def test_routes_may_enqueue_the_jobs_of_any_pipeline_by_name() -> None:
    # In a process of its own: kinds are registered once for all that runs in one.
    code = """
from waybill.config import ApiSettings, DatabaseUrl
from waybill.db import Database
from waybill.storage import LocalStorage
from waybill_api.app import create_app
from waybill_engine import kind_named
from pathlib import Path
url = "postgresql://nobody@localhost/nothing"
create_app(ApiSettings(database_url=url), Database(DatabaseUrl(url)), LocalStorage(Path(".")))
print(kind_named("convert_pdf").name)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "convert_pdf", ran.stderr
