"""The certificate with which the metrics API is served, and the contexts that are made of it.

cert-manager and `helm upgrade` replace its files under our feet. They are compared by content, since a mounted Secret
is a link to another folder after each change, and a pair that does not fit is not used: it is only half written.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from waybill_operator.metrics_api.proxy_trust import ProxyTrust

CERTIFICATE, KEY = "tls.crt", "tls.key"
_MOST_BYTES = 1 << 20


class ServingCertificate:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: tuple[bytes, bytes, ProxyTrust | None] | None = None
        self.trouble: str | None = "it has not been read yet"
        """Why it cannot be used; None if it can."""

    def new_context(self, trust: ProxyTrust | None) -> ssl.SSLContext | None:
        """A server's context, if the files or the trust say something new since the last one; otherwise None.

        Clients may show a certificate, and one that is shown must be the front proxy's.
        """
        try:
            found = (_bounded(self._folder / CERTIFICATE), _bounded(self._folder / KEY), trust)
            if found == self._read:
                self.trouble = None
                return None
            context = _context(self._folder)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            self.trouble = f"{self._folder}: {error}"
            return None
        self._read, self.trouble = found, None
        if trust is not None:
            context.load_verify_locations(cadata=trust.authority)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def _context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    return context


def _bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        found = file.read(_MOST_BYTES + 1)
    if not found or len(found) > _MOST_BYTES:
        raise ValueError(f"{path.name} is empty, or too large")
    return found
