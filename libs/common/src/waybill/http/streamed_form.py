"""A multipart form whose file is streamed: how our services send the gateway a document that is in storage."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping


class StreamedForm:
    """Fields and one PDF; its length is known beforehand, so nothing needs to be chunked."""

    def __init__(self, fields: Mapping[str, str], size: int) -> None:
        boundary = secrets.token_hex(16)
        parts = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        # The name is ours and not the user's: the gateway has no use for it, and a header is no place for it.
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
