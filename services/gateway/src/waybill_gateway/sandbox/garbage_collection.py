"""When a parsing process looks for garbage: between documents, never within one.

A long invoice makes many objects and hardly any garbage: looking for some while it is read takes a fifth of the time,
and more with every line. What does hang together in circles lives until its document is done; the memory limit holds
meanwhile. The benchmark prepares its reader in the same way, to measure what users get.
"""

from __future__ import annotations

import gc


def only_between_documents() -> None:
    """From now on nothing is collected but by `collect`, and what is there by now is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.disable()


def collect() -> None:
    """After a document: let go of all of it."""
    gc.collect()
