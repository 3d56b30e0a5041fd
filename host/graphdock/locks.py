"""Locks that a forked child may take, and a pause of the collector of cycles: who held one may not exist there.

A child has one thread, the one that forked. What another thread held at that moment would stay held for the life of the
process, and the first step that plans, leases or declares would hang. Every lock of the host that a step may meet is made here.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

__all__ = ["collector_paused", "new_lock", "parse_expression"]

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


class _Pauses:
    """Pauses of the collector of cycles. The first notes whether it was on, the last turns it on again.

    Each thread for itself would not do: one that finds it off, for another pauses, and turns it off once that one has turned it on
    leaves it off for good.
    """

    def __init__(self) -> None:
        self._lock, self._on = new_lock(), False
        self._threads: list[int] = []  # each as often as it pauses

    def begin(self) -> None:
        with self._lock:
            if not self._threads:
                self._on = gc.isenabled()
                gc.disable()
            self._threads.append(threading.get_ident())

    def end(self) -> None:
        with self._lock:
            self._threads.remove(threading.get_ident())
            if not self._threads and self._on:
                gc.enable()

    def end_in_child(self) -> None:
        if self._threads:
            self._threads = [each for each in self._threads if each == threading.get_ident()]
            if not self._threads and self._on:
                gc.enable()


_pauses = _Pauses()


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """No collection of cycles meanwhile, in any thread. Pauses of several threads may overlap.

    A plan is made of objects that stay: searching the growing heap for garbage made plans of 100,000 nodes cost 1.6 times as much
    per node as plans of 10,000. While a device records, what is freed would be freed within the recording.
    """
    _pauses.begin()
    try:
        yield
    finally:
        _pauses.end()


def _in_child() -> None:
    _free_in_child()
    _pauses.end_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


_trees = new_lock()


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression. Raises SyntaxError.

    One thread makes one at a time: CPython 3.11 counts the depth of all that are being made as one, and what another thread makes
    meanwhile, from a stack of another depth, is a SystemError.
    """
    with _trees:
        return ast.parse(text, mode="eval").body
