"""The page at `/`: says truthfully what runs here, until the real pages come. No script, one style sheet."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from waybill.http import STRICT_POLICY
from waybill_api.health import find_trouble

router = APIRouter()

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --paper: #fbfcfd;
  --card: #fff; --good: #17803d; --bad: #b42318; --accent: #2457c5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ecf1; --soft: #9aa6b5; --line: #2c3542; --paper: #11161d; --card: #181f28;
    --good: #4cc38a; --bad: #ff8a80; --accent: #8ab4ff; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; }
main { max-width: 38rem; margin: 12vh auto 4rem; padding: 0 1.25rem; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -.02em; }
p { margin: .5rem 0 1.5rem; } .soft { color: var(--soft); }
dl { margin: 0 0 1.5rem; background: var(--card); border: 1px solid var(--line); border-radius: .75rem; }
dl div { display: flex; gap: 1rem; justify-content: space-between; padding: .75rem 1.1rem; }
dl div + div { border-top: 1px solid var(--line); }
dt { color: var(--soft); } dd { margin: 0; font-weight: 600; text-align: right; }
.good { color: var(--good); } .bad { color: var(--bad); }
code { font: .9em ui-monospace, monospace; white-space: nowrap; }
a { color: var(--accent); }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"{STRICT_POLICY}; style-src 'sha256-{_HASH}'"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Waybill</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>Waybill</h1>
<p class="soft">Documents in, structured and checkable results out.</p>
<dl>
<div><dt>API</dt><dd class="good">running, version {version}</dd></div>
<div><dt>Database</dt><dd class="{mood}">{database}</dd></div>
</dl>
<p>The job engine and its worker are in place; uploading documents and the web pages for it are not built yet.
Look after jobs and queues with <code>waybill jobs ls</code> and <code>waybill queue stats</code>.</p>
<p class="soft">For monitors: <a href="/livez">/livez</a>, <a href="/readyz">/readyz</a>,
<a href="/api/healthz">/api/healthz</a></p>
</main>
</body>
</html>
"""


@router.api_route("/", methods=["GET", "HEAD"])
async def landing(request: Request) -> HTMLResponse:
    """What runs here, as it is at this moment."""
    trouble = await find_trouble(request.app.state.database)
    page = _PAGE.format(
        style=_STYLE,
        version=escape(request.app.version),
        mood="bad" if trouble else "good",
        database='not ready; <a href="/readyz">why?</a>' if trouble else "connected, schema current",
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})
