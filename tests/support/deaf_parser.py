"""A parser that closes its channel while it starts, says so in the file its function names, and runs on."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

order = json.loads(sys.argv[1])
os.close(order["channel"])
Path(order["function"].partition(":")[2]).write_text(str(os.getpid()))
time.sleep(3600)
