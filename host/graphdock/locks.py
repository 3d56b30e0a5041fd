"""Locks that a forked child may take: whoever held one in the parent does not exist there.

A child has one thread, the one that forked. What another thread held at that moment would stay held for the life of the
process, and the first step that plans, leases or declares would hang. Every lock of the host that a step may meet is made here.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["new_lock"]

_all: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.RLock:
    """A re-entrant lock that is free in a forked child, unless the thread that forked holds it itself."""
    lock = threading.RLock()
    _all.add(lock)
    return lock


def _free_in_child() -> None:
    for lock in list(_all):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)
