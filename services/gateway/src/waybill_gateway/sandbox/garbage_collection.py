"""A parser collects garbage between documents, never within one.

A long invoice makes many objects and hardly any garbage. Collecting while it is read takes a fifth of the time, and
more with every line. Reference cycles live until their document is done; the memory limit still holds. The benchmark
sets up its reader in the same way, to measure what users get.
"""

from __future__ import annotations

import gc


def only_between_documents() -> None:
    """Stop automatic collection, and exempt all objects that exist now from later collections."""
    gc.collect()
    gc.freeze()
    gc.disable()


def collect() -> None:
    """Collect what a document left."""
    gc.collect()
