"""Headers of every response, and the content policy of our pages: nothing inline, nothing from other sites."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

PAGE_HEADERS = {
    # With `no-referrer`, browsers send `Origin: null` with a form, and we could not tell our own forms from others'.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Frame-Options": "DENY",
}
_A_YEAR = "max-age=31536000; includeSubDomains"


class PageHeaders:
    """Adds headers for browsers, unless the response has its own. It runs inside `waybill.http.SafeHeaders`."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._headers = PAGE_HEADERS | ({"Strict-Transport-Security": _A_YEAR} if https else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely if scope["type"] == "http" else send)
