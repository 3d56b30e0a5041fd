"""Trees of expressions that several threads make at once."""

from __future__ import annotations

import ast
import gc
import sys
import threading

from graphdock.opdef.expression import compile_expression


def test_two_threads_make_trees_from_stacks_of_other_depths():
    """The collector runs in the middle of the first one, and lets another thread make a tree: a SystemError of CPython 3.11."""
    found, threads = [], []

    def make(depth, text):
        if depth:
            return sorted([1], key=lambda _: make(depth - 1, text))
        try:
            found.append(compile_expression(text))
        except SystemError as error:
            found.append(error)
        return 0

    def collected(phase, info):
        if not threads and sys._getframe(1).f_code is ast.parse.__code__:
            threads.append(threading.Thread(target=make, args=(20, "b + a * 7131")))
            threads[0].start()
            threads[0].join(0.5)

    before = gc.get_threshold()
    gc.callbacks.append(collected)
    try:
        gc.set_threshold(1, 1, 1)
        make(1, "a + b * 7129")
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)
    for thread in threads:
        thread.join(30)
    assert len(found) == 2
    assert not [e for e in found if isinstance(e, SystemError)]
