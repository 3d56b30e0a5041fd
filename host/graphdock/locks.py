"""Locks that a forked child may take: whoever held one in the parent does not exist there.

A child has one thread, the one that forked. What another thread held at that moment would stay held for the life of the
process, and the first step that plans, leases or declares would hang. Every lock of the host that a step may meet is made here.
"""

from __future__ import annotations

import ast
import os
import threading
import weakref
from typing import Any

__all__ = ["new_lock", "parse_expression"]

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


_trees = new_lock()


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression. Raises SyntaxError.

    One thread makes one at a time: CPython 3.11 counts the depth of all that are being made as one, and what another thread makes
    meanwhile, from a stack of another depth, is a SystemError.
    """
    with _trees:
        return ast.parse(text, mode="eval").body
