"""Instance: what one context keeps of a straight-line program, so that a step finds its buffers, kernels and function ready."""

from __future__ import annotations

import contextvars
import functools
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.step import StepContext, in_callers_context
from graphdock.contracts.streams import RandomStream

from graphdock_executor.straight_line.helpers import quiet, read_only
from graphdock_executor.stream_slots import StreamSlots

__all__ = ["Instance", "QueuedInstance", "stoppers"]


class Instance:
    """One runnable copy of a program. One step at a time, on any thread; it survives the error of a step.

    Args:
      namespace: the globals of the generated source, with its function ``step``.
      called: those of them that the source calls: kernels, copies, helpers.
      streams: name of a random op -> the streams of its nodes.
      quietly: it runs in a context of its own; else in the caller's, which Python functions are to see. NumPy's floating-point
        warnings are off in either, but for those functions.
      at_end: called when the instance is gone.
      within: contexts that every step runs in, the last one outermost.

    Attributes:
      call: takes the feeds, returns the results.
      forget: takes back the watch by which a cancelled step stops.
    """

    __slots__ = ("__weakref__", "call", "forget", "free", "namespace", "streams")

    def __init__(
        self,
        namespace: dict[str, Any],
        called: dict[str, Any],
        streams: Mapping[str, Sequence[RandomStream]],
        quietly: bool,
        debug: bool,
        at_end: Callable[[], None] | None = None,
        within: Sequence[AbstractContextManager[Any]] = (),
    ) -> None:
        self.namespace = namespace
        self.streams = streams
        # The functions of the generated source know the namespace that holds them: a cycle, which is broken here.
        self.free = weakref.finalize(self, _free, namespace, called, at_end)
        self.free.atexit = False
        self.forget: Callable[[], None] = _nothing
        self.call: Callable[..., Any] = namespace["step"]
        if debug:
            self.call = functools.partial(_with_read_only_feeds, self.call)
        if quietly:
            # A prepared context costs 12 ns where np.errstate costs 1 us.
            context = contextvars.copy_context()
            context.run(quiet)
            self.call = functools.partial(context.run, self.call)
        else:
            self.call = functools.partial(in_callers_context, self.call)
        for wanted in within:
            self.call = functools.partial(_in_context, wanted, self.call)

    def begin(self, step: StepContext) -> None:
        """Give each random op the number of the step that begins."""
        for name, streams in self.streams.items():
            ordinal = step.services.ordinal(name)
            for stream in streams:
                stream.begin(ordinal)


class QueuedInstance(Instance):
    """An instance of a step that gives work to queues: it ends when the work has, and holds its stream slots meanwhile.

    Args:
      arguments: queued device -> the streams whose ordinals are its step arguments.
    """

    __slots__ = ("_arguments", "stream_slots")

    def __init__(
        self,
        namespace: dict[str, Any],
        called: dict[str, Any],
        streams: Mapping[str, Sequence[RandomStream]],
        quietly: bool,
        debug: bool,
        stream_slots: StreamSlots,
        arguments: Mapping[Device, Sequence[RandomStream]],
        within: Sequence[AbstractContextManager[Any]] = (),
    ) -> None:
        super().__init__(namespace, called, streams, quietly, debug, stream_slots.close, within)
        self.stream_slots = stream_slots
        self._arguments = arguments
        self.call = functools.partial(_until_fence, stream_slots, arguments, self.call)


def _until_fence(
    stream_slots: StreamSlots, arguments: Mapping[Device, Sequence[RandomStream]], call: Callable[..., Any], *feeds: Any
) -> Any:
    return stream_slots.run({device: _packed(streams) for device, streams in arguments.items()}, call, feeds)


def _packed(streams: Sequence[RandomStream]) -> bytes:
    """The step arguments of a device: the ordinal of each random op."""
    return struct.pack(f"<{len(streams)}Q", *[s.ordinal for s in streams])


def _nothing() -> None:
    return


class _Stopped:
    """Stands for the condition that every loop looks up: raises the error of its step."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __bool__(self) -> bool:
        raise self._error


def stoppers(
    namespace: dict[str, Any], called: Mapping[str, Any]
) -> tuple[Callable[[BaseException], None], Callable[[], None]]:
    """Functions that stop a step that runs in ``namespace``, and that make it ready for another one.

    Every kernel and copy that the step is still to call raises the error instead, and so does every loop. Statements look up
    their kernels by name when they run, so that a step can be stopped without a check in each of them.
    """

    def stop(error: BaseException) -> None:
        def stopped(*args: Any, **kwargs: Any) -> Any:
            raise error

        namespace.update(dict.fromkeys(called, stopped))
        namespace["running"] = _Stopped(error)

    def make_ready() -> None:
        namespace.update(called)
        namespace["running"] = True

    return stop, make_ready


def _free(namespace: dict[str, Any], called: dict[str, Any], at_end: Callable[[], None] | None) -> None:
    called.clear()
    namespace.clear()
    if at_end is not None:
        at_end()


def _in_context(context: AbstractContextManager[Any], call: Callable[..., Any], *feeds: Any) -> Any:
    with context:
        return call(*feeds)


def _with_read_only_feeds(function: Callable[..., Any], *feeds: Any) -> Any:
    return function(*[read_only(f) for f in feeds])
