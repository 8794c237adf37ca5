"""A multipart form with a streamed file. Our services use it to send the gateway a document from storage."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping


class StreamedForm:
    """Fields and one PDF. The length is known beforehand, so the request needs no chunked encoding."""

    def __init__(self, fields: Mapping[str, str], size: int) -> None:
        boundary = secrets.token_hex(16)
        parts = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        # We send a name of our own: the gateway does not need the user's, and it does not belong into a header.
        file = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="document.pdf"\r\n'
            "Content-Type: application/pdf\r\n\r\n"
        )
        self._head = (parts + file).encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(len(self._head) + size + len(self._tail)),
        }

    async def body(self, document: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield self._head
        async for chunk in document:
            yield chunk
        yield self._tail
