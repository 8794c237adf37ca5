"""An S3 store for tests and development: moto's server, with the bucket that `S3_BUCKET` names.

Objects are in memory and gone when it stops. It lets everybody in, whatever the key.
"""

import logging
import os
import signal
import sys
import urllib.request

from moto.server import ThreadedMotoServer


def main() -> int:
    port = int(os.environ.get("S3_PORT", "9000"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer("0.0.0.0", port, verbose=False)  # noqa: S104 - a container's port
    server.start()
    if bucket := os.environ.get("S3_BUCKET"):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{bucket}", method="PUT")
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - our own server
    sys.stdout.write(f"listening on {port}\n")
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
