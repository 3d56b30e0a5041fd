"""Faults of kernels that give the right numbers: what they change of the process, what they keep, what two steps share."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from planted import kernels
from planted.bench import Fault, make_host, refuse, right, suspects

KIT = frozenset({"conformance"})
#: What faulty kernels keep; emptied by :func:`as_it_was`.
_KEPT: list[Any] = []
_SCRATCH: dict[Any, Any] = {}


@contextmanager
def as_it_was() -> Iterator[None]:
    """A block after which the process is what it was before it."""
    folder, handler, limit = os.getcwd(), signal.getsignal(signal.SIGTERM), sys.getrecursionlimit()
    with warnings.catch_warnings():
        try:
            yield
        finally:
            os.chdir(folder)
            signal.signal(signal.SIGTERM, handler)
            sys.setrecursionlimit(limit)
            gc.enable()
            os.environ.pop("TEST_OF_HABITS", None)
            _KEPT.clear()
            _SCRATCH.clear()


def _sets_a_handler() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *told: None)


#: What a right kernel does besides.
BESIDES: dict[str, Callable[[], Any]] = {
    "it seeds NumPy": lambda: np.random.seed(0),  # noqa: NPY002
    "it draws from NumPy's generator": lambda: np.random.normal(),  # noqa: NPY002
    "it draws from Python's generator": random.random,
    "it sets the environment": lambda: os.environ.update(TEST_OF_HABITS="1"),
    "it changes the working directory": lambda: os.chdir(tempfile.gettempdir()),
    "it ignores warnings": lambda: warnings.simplefilter("ignore", ResourceWarning),
    "it sets a handler of signals": _sets_a_handler,
    "it switches the collector off": gc.disable,
    "it sets the limit of recursion": lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    "it keeps memory of each step": lambda: _KEPT.append(np.zeros(4096)),
}


def _besides(function: Callable[[], Any]) -> Callable[..., Any]:
    def body(x: Any, *out: Any) -> Any:
        function()
        return right(x, *out)

    return body


def one_scratch_buffer(x: Any, *out: Any) -> Any:
    """Its steps share a buffer, which one of them writes over before another has read it."""
    refuse(x)
    scratch = _SCRATCH.setdefault((x.shape, x.dtype), np.empty_like(x))
    np.add(x, x, scratch)
    return np.copyto(out[0], scratch) if out else scratch.copy()


def one_last_input(x: Any, *out: Any) -> Any:
    """Its steps share what was given last."""
    refuse(x)
    _SCRATCH["given"] = x
    return np.add(_SCRATCH["given"], x, *out)


def one_device_buffer(ctx: Any) -> Callable[..., Any]:
    """Two queues write one buffer, and nothing orders them."""
    kept = ctx.device.__dict__.setdefault("kept", {})

    def compute(x: Any, *out: Any) -> Any:
        key = ctx.inputs[0].dtype, tuple(x.shape)
        between = kept.setdefault(key, ctx.device.empty(*key))
        source, shared = x.array, between.array
        ctx.queue.launch("first half", lambda: kernels._copied(source, shared), [x], [between])
        target = out[0] if out else ctx.queue.empty(ctx.outputs[0].dtype, x.shape)
        array = target.array
        ctx.queue.launch("second half", lambda: np.add(shared, shared, array), [between], [target])
        return None if out else target

    return compute


def faults() -> list[Fault]:
    def make(place: str, body: Callable[..., Any]) -> Callable[[], Any]:
        factory = suspects.ChipFactory if place == "chip" else lambda: None
        return lambda: make_host(suspects.kernel(place, body), factory=factory())

    found = [
        Fault(name, "habit", place, KIT, make(place, _besides(function)))
        for name, function in BESIDES.items()
        for place in ("cpu", "chip")
    ]
    shared = {"one scratch buffer for all threads": one_scratch_buffer, "the input of the last step": one_last_input}
    found += [
        Fault(name, "habit", place, KIT, make(place, body), text="threads")
        for name, body in shared.items()
        for place in ("cpu", "chip")
    ]
    queued = kernels._queue_kernel(one_device_buffer, capture_safe=False)
    return [*found, Fault("one buffer for all queues", "habit", "queued", KIT, queued, text="threads")]
