"""Work bound to a queue: launches packed, addresses put in where they vary."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts import PlanNode

from graphdock_cuda.launch import Launch, Param, raw, u64
from graphdock_cuda.staged import bound_library
from graphdock_cuda.work import ErrorWord, Operand, Step, Stream, Table

if TYPE_CHECKING:
    from graphdock_cuda.device import CudaDevice
    from graphdock_cuda.queue import CudaQueue

__all__ = ["Arrays", "Bindings", "bind_steps"]


class Arrays:
    """The arrays of one call: by kind and index of an operand."""

    __slots__ = ("inputs", "outputs", "scratch", "stream")

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any, stream: Any) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.scratch = scratch
        self.stream = stream

    def address(self, operand: Operand) -> int | None:
        """Return where it lies; None where that is not known."""
        if operand.kind == "scratch":
            array = self.scratch
        else:
            array = (self.inputs if operand.kind == "input" else self.outputs)[operand.index]
        return None if array is None else array.address + operand.offset


class Bindings:
    """Bindings that all steps of a node need of its instance. ``codes``: of its error words."""

    def __init__(self, device: CudaDevice, queue: CudaQueue, node: PlanNode) -> None:
        self.device = device
        self.queue = queue
        self.node = node
        self.codes: list[int] = []
        self._used = 0

    @functools.cached_property
    def error_address(self) -> int:
        address: int = self.device.words.address(self.queue)
        return address

    def again(self) -> None:
        """Let what is bound from now on take the place of what was: its error words take the same codes."""
        self._used = 0

    def code(self, word: ErrorWord) -> int:
        """The code of the next error word that is bound."""
        words = self.device.words
        if self._used == len(self.codes):
            self.codes.append(words.code(self.node, word.make))
        else:
            words.renew(self.codes[self._used], word.make)
        self._used += 1
        return self.codes[self._used - 1]

    def end_with(self, owner: Any) -> None:
        """The codes are forgotten when ``owner`` goes."""
        weakref.finalize(owner, self.device.words.forget, self.codes).atexit = False

    def forget(self) -> None:
        """The codes are forgotten now."""
        self.device.words.forget(self.codes)


#: Queues one step, with the arrays of a call.
Act = Callable[[Arrays], None]


def bind_steps(steps: Sequence[Step], known: Arrays, bindings: Bindings) -> tuple[list[Callable[[], None]], list[Act]]:
    """The steps, bound: as many as possible of them for good, when every address is known.

    Returns ``(fixed, varying)``: one of the two lists is empty. ``fixed`` take nothing.
    """
    acts = [_bound(step, known, bindings) for step in steps]
    if all(not varies for _, varies in acts):
        return [functools.partial(act, known) if wants else act.__call__ for act, wants in _plain(acts)], []
    return [], [act for act, _ in acts]


def _plain(acts: Sequence[tuple[Act, bool]]) -> list[tuple[Any, bool]]:
    return [(getattr(act, "fixed", act), not hasattr(act, "fixed")) for act, _ in acts]


class _LaunchStep:
    """A launch whose varying arguments are put in before it runs.

    ``random``: the word where a stream's five begin. ``arguments``: where the step's arguments lie.
    """

    __slots__ = ("fixed", "_arguments", "_launch", "_random", "_varying")

    def __init__(
        self, launch: Launch, varying: Sequence[tuple[int, Operand]], random: int | None, arguments: int
    ) -> None:
        self._launch = launch
        self._arguments = arguments
        self._varying = tuple(varying)
        self._random = random
        self.fixed = launch.run

    def __call__(self, arrays: Arrays) -> None:
        words = self._launch.words
        for word, operand in self._varying:
            words[word] = arrays.address(operand)
        if self._random is not None:
            at, stream = self._random, arrays.stream
            _, iteration, outer = stream.counter()
            words[at], words[at + 1] = stream.key
            words[at + 2], words[at + 3] = outer, iteration
            words[at + 4] = self._arguments + (getattr(stream, "slot", None) or 0)
        self._launch.run()


def _bound(step: Step, known: Arrays, bindings: Bindings) -> tuple[Act, bool]:
    """Return how the step is done, and whether that varies from call to call."""
    if step.kind == "launch":
        return _bound_launch(step, known, bindings)
    if step.kind == "convolution" or (step.kind == "gemm" and step.what.aligned > 1):
        return bound_library(step, known, bindings)
    addresses = [None if x is None else known.address(x) for x in step.args]
    varies = any(x is not None and a is None for x, a in zip(step.args, addresses, strict=True))
    return functools.partial(_ACTS[step.kind], step, bindings.device.driver, bindings.queue.stream), varies


def _fill(step: Step, driver: Any, stream: int, arrays: Arrays) -> None:
    (target,) = step.args
    driver.fill(arrays.address(target), step.what, target.nbytes, stream)


def _copy(step: Step, driver: Any, stream: int, arrays: Arrays) -> None:
    target, origin = step.args
    driver.copy(arrays.address(target), arrays.address(origin), step.what, stream)


def _gemm(step: Step, driver: Any, stream: int, arrays: Arrays) -> None:
    step.what.run(stream, *(0 if x is None else arrays.address(x) for x in step.args))


_ACTS: dict[str, Callable[[Step, Any, int, Arrays], None]] = {"fill": _fill, "copy": _copy, "gemm": _gemm}


def _bound_launch(step: Step, known: Arrays, bindings: Bindings) -> tuple[Act, bool]:
    params: list[Param] = []
    varying: list[tuple[int, int, Operand]] = []  # by parameter, and the word within it
    random: int | None = None
    for arg in step.args:
        if isinstance(arg, Operand):
            address = known.address(arg)
            if address is None:
                varying.append((len(params), 0, arg))
            params.append(u64(address or 0))
        elif isinstance(arg, Table):
            addresses = [known.address(x) for x in arg.operands]
            varying += [
                (len(params), i, x) for i, (x, a) in enumerate(zip(arg.operands, addresses, strict=True)) if a is None
            ]
            params.append(raw(b"".join(u64(a or 0) for a in addresses).ljust(8 * arg.length, b"\0")))
        elif isinstance(arg, Stream):
            random = len(params)
            params += [u64(0)] * 5  # put in at the call
        elif isinstance(arg, ErrorWord):
            params += [u64(bindings.error_address), u64(bindings.code(arg))]
        else:
            params.append(arg)
    assert step.source is not None
    device = bindings.device
    function = device.images.function(step.source, step.entry, step.shared)
    launch = Launch(device.driver, function, step.grid, step.block, step.shared, params, bindings.queue.stream)
    first = launch.first
    at = None if random is None else first[random]
    act = _LaunchStep(launch, [(first[p] + i, x) for p, i, x in varying], at, bindings.queue.arguments.address)
    return act, bool(varying) or random is not None
