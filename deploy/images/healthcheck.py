"""Docker's health check of a service: whether it says on its own port that it is ready.

It runs every few seconds beside the service, so it imports little; `-IS` in the image keeps `site` away, too.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException


def main(variable: str, default: str) -> int:
    """Ask the port that the variable names."""
    connection = HTTPConnection("127.0.0.1", int(os.environ.get(variable) or default), timeout=4)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
    except (OSError, HTTPException) as error:
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
        return 1
    finally:
        connection.close()
    sys.stdout.write(f"{answer.status} {answer.reason}\n")
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
