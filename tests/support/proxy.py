"""A real nginx in front of a server, with the headers that its manual recommends."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.child_processes import dying_with_us, free_port

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

_CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 100; }}
http {{
  access_log off;
  {temporary}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{upstream};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto {scheme};
    }}
  }}
}}
"""


@contextlib.contextmanager
def proxy(upstream: int, folder: Path, *, scheme: str) -> Iterator[str]:
    """Run nginx as a proxy that clients reach by this scheme, as far as it says. Yields its address."""
    if NGINX is None:
        pytest.skip("there is no nginx (Debian's package nginx-light)")
    port = free_port()
    temporary = "\n  ".join(f"{each}_temp_path {folder}/{each};" for each in _TEMPORARY)
    configuration = folder / "nginx.conf"
    configuration.write_text(
        _CONFIGURATION.format(folder=folder, temporary=temporary, port=port, upstream=upstream, scheme=scheme)
    )
    # The option keeps it from opening the system's own log before it has read where ours is.
    command = [NGINX, "-e", str(folder / "nginx.log"), "-p", str(folder), "-c", str(configuration)]
    program = subprocess.Popen(dying_with_us(command), stdin=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        program.terminate()
        program.wait(10)
