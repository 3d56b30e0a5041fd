"""Tools of the laws: work that is counted, steps that may hang, kernels that stop inside a step, memory that is metered."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import tracemalloc
import types
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts import ArgDef, Bound, KernelDef, OpDef, hookimpl
from graphdock.locks import collector_paused
from graphdock.plugin.host import Host

_plugins = itertools.count()


# -- work


class _Enough(BaseException):
    pass


def calls(function: Callable[[], Any], limit: float = 20_000_000) -> int:
    """How many functions (Python's and C's) a call of ``function`` calls; fails as soon as there are more than ``limit``."""
    return _counted(function, limit, sys.setprofile, ("call", "c_call"))


def lines(function: Callable[[], Any], limit: float = 20_000_000) -> int:
    """As :func:`calls`, of lines of Python."""
    return _counted(function, limit, sys.settrace, ("line",))


def _counted(function: Callable[[], Any], limit: float, install: Callable[[Any], None], events: Iterable[str]) -> int:
    count = 0

    def hook(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if event in events:
            count += 1
            if count > limit:
                raise _Enough
        return hook

    with collector_paused():  # what other tests left may have finalizers, whose calls are none of the function's
        install(hook)
        try:
            function()
        except _Enough:
            raise AssertionError(f"more than {limit:.0f} {events[0]}s") from None
        finally:
            install(None)
    return count


def check_growth(
    build: Callable[[int], Callable[[], Any]],
    small: int,
    large: int,
    at_most: float,
    count: Callable[..., int] = calls,
) -> None:
    """Fail when ``build(large)()`` costs more than ``at_most`` times as much per unit of size as ``build(small)()``."""
    build(2)()
    per_unit = count(build(small)) / small
    count(build(large), per_unit * large * at_most)


def show_scans(monkeypatch: Any) -> None:
    """Let searches of lists and hashing of nodes, values, operations and tensors count as calls, though C does them."""
    from graphdock.contracts.ir import PlanNode, Value

    for kind in (PlanNode, Value, tf.Operation, tf.Tensor):
        monkeypatch.setattr(kind, "__eq__", lambda a, b: a is b)
        monkeypatch.setattr(kind, "__hash__", lambda a: id(a) >> 4)


def calls_of(names: Iterable[str], function: Callable[[], Any]) -> int:
    """How often a call of ``function`` calls Python functions of these names, whatever class they belong to."""
    wanted, count = frozenset(names), 0

    def hook(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_name in wanted

    with collector_paused():
        sys.setprofile(hook)
        try:
            function()
        finally:
            sys.setprofile(None)
    return count


# -- steps that may hang


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """What ``function`` returns or raises on a thread of its own; fails when it is not done after so many seconds."""
    done: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            done.append((function(), None))
        except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
            done.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert done, f"it hangs: not done after {seconds} s"
    result, error = done[0]
    if error is not None:
        raise error
    return result


def interrupted(function: Callable[[], Any], at: int) -> bool:
    """Call ``function``; when it has come to its ``at``-th point where Python looks for signals, Ctrl-C is pressed.

    Python looks when a function begins and when a C function has returned.

    Returns:
      Whether it came so far.
    """
    seen = 0

    def hook(frame: Any, event: str, arg: Any) -> None:
        nonlocal seen
        if event in ("call", "c_return"):
            seen += 1
            if seen == at + 1:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
    try:
        sys.setprofile(hook)
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
    return seen > at


# -- plugins in memory


def plug(host: Host, **hooks: Callable[..., Iterable[Any]]) -> str:
    """Register a plugin with these hooks in ``host``; its name."""
    name = f"lab{next(_plugins)}"
    host.register(name, types.SimpleNamespace(**{k: hookimpl(f) for k, f in hooks.items()}, __name__=name))
    return name


def op(host: Host, name: str, inputs: str = "x: float32", outputs: str = "y: float32", **fields: Any) -> OpDef:
    """Declare an op whose arguments are written as ``"x: float32, v: resource"``; outputs have the shape of ``x``."""

    def args(text: str) -> tuple[ArgDef, ...]:
        pairs = [part.strip().split(": ") for part in text.split(",") if part.strip()]
        return tuple(ArgDef(n, t, None if t == "resource" else "[*S]") for n, t in pairs)

    traits = frozenset(fields.pop("traits", ()))
    opdef = OpDef(f"lab.{name}", inputs=args(inputs), outputs=args(outputs), traits=traits, package="lab", **fields)
    host.ops.add(opdef, "lab")
    return opdef


class Gate:
    """An op that passes its input on after it was let through: a step stands in it, with all that it holds.

    Attributes:
      inside: how many steps have come to it. ``open``: set to let them all through.
      waits: its op says that it may wait, so that its step holds nothing meanwhile.
    """

    def __init__(self, host: Host, waits: bool = False) -> None:
        self.opdef = op(host, "Gate", traits={"stateful"}, effects=frozenset({"waits"} if waits else ()))
        self.inside = threading.Semaphore(0)
        self.open = threading.Event()
        self.on_entry: Callable[[], Any] = lambda: None
        host.kernels.add(KernelDef("lab.Gate", "cpu", self._bind), "user", "lab")

    def _bind(self, ctx: Any) -> Bound:
        def wait() -> None:
            self.inside.release()
            self.on_entry()
            self.open.wait(60)

        def fresh(x: Any) -> Any:
            wait()
            return x.copy()

        def planned(x: Any, y: Any) -> None:
            wait()
            y[...] = x

        return Bound(fresh if ctx.fresh else planned)

    def __call__(self, x: Any) -> tf.Tensor:
        graph = tf.get_default_graph()
        return graph.create_op("lab.Gate", [tf.convert_to_tensor(x)], op_def=self.opdef).outputs[0]


class Mailbox:
    """An op that waits for the array [1] that :meth:`hand_over` brings, in order of arrival. It holds no thread.

    Attributes:
      waiting: Futures of those that wait. ``kept``: what was handed over while nobody waited.
    """

    def __init__(self, host: Host, name: str = "Mailbox", **fields: Any) -> None:
        self.lock = threading.Lock()
        self.waiting: deque[Future[Any]] = deque()
        self.kept: deque[Any] = deque()
        self.came = threading.Semaphore(0)
        outputs = (ArgDef("y", "float32", "[1]"),)
        facts = {"traits": frozenset({"stateful"}), "effects": frozenset({"waits"}), "package": "lab"}
        self.opdef = OpDef(f"lab.{name}", outputs=outputs, **facts, **fields)
        host.ops.add(self.opdef, "lab")
        host.kernels.add(KernelDef(f"lab.{name}", "cpu", lambda ctx: self.take, modes=("fresh",)), "user", "lab")

    def take(self) -> Any:
        with self.lock:
            if self.kept:
                made = self.kept.popleft()
            else:
                made = Future()
                self.waiting.append(made)
        self.came.release()  # whoever waits for that finds it there
        return made

    def hand_over(self, value: Any) -> None:
        """Give an array to the first that still waits; keep it where nobody does."""
        array = np.asarray(value, np.float32)
        while True:
            with self.lock:
                future = self.waiting.popleft() if self.waiting else None
                if future is None:
                    self.kept.append(array)
                    return
            if future.set_running_or_notify_cancel():
                future.set_result(array)
                return

    def __call__(self) -> tf.Tensor:
        return tf.get_default_graph().create_op(self.opdef.name, [], op_def=self.opdef).outputs[0]


# -- memory


class Meter:
    """Bytes that this process has taken from NumPy and from Python and not given back, since tracing began."""

    def __enter__(self) -> Meter:
        tracemalloc.start()
        return self

    def __exit__(self, *args: Any) -> None:
        tracemalloc.stop()

    @property
    def held(self) -> int:
        return tracemalloc.get_traced_memory()[0]
