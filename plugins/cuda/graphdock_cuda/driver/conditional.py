"""Conditional nodes of graphs, by the driver's library: CuPy's bindings have none of it. CUDA 12.4 brought them.

A body is recorded on the stream that records the graph around it: kernels are bound to that one. A stream records one graph at a
time, so that it leaves the outer one where the node stands, records the body, and goes on behind the node. Events that were
recorded before are of no use behind it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.driver.libcuda import LIBRARY

__all__ = ["Conditionals"]

_CONDITIONAL = 13  # CU_GRAPH_NODE_TYPE_CONDITIONAL
_IF, _WHILE = 0, 1  # CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_WHILE
_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
_CALLS = (
    "cuCtxGetCurrent",
    "cuGraphAddNode",
    "cuGraphConditionalHandleCreate",
    "cuGraphDestroy",
    "cuStreamBeginCaptureToGraph",
    "cuStreamEndCapture",
    "cuStreamGetCaptureInfo_v2",
)


class _Node(ctypes.Structure):
    """``CUgraphNodeParams`` of a conditional node: 256 bytes."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("reserved0", ctypes.c_int * 3),
        ("handle", ctypes.c_uint64),
        ("kind", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("bodies", ctypes.POINTER(ctypes.c_void_p)),
        ("context", ctypes.c_void_p),
        ("padding", ctypes.c_int64 * 25),
        ("reserved2", ctypes.c_int64),
    )


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(LIBRARY)


class Conditionals:
    """See Driver. A stream is one thread's at a time.

    Args:
      library: with the driver's functions; default: the driver's.
    """

    def __init__(self, library: Any = None) -> None:
        self._given = library
        #: stream -> the graphs around the body that it records, each with the node that holds the next one
        self._around: dict[int, list[tuple[int, int]]] = {}

    @property
    def _library(self) -> Any:
        return self._given or _library()

    def missing(self) -> str:
        """Return why the library has none; empty where it has all."""
        lacks = [call for call in _CALLS if not hasattr(self._library, call)]
        return f"the driver lacks {', '.join(lacks)}" if lacks else ""

    def condition(self, stream: int) -> int:
        """See Driver.condition."""
        graph, _ = self._recorded(stream)
        handle = ctypes.c_uint64()
        create = ("cuGraphConditionalHandleCreate", ctypes.byref(handle), ctypes.c_void_p(graph), self._context())
        self._call(*create, ctypes.c_uint(0), ctypes.c_uint(0))
        return handle.value

    def begin(self, stream: int, condition: int, repeats: bool) -> None:
        """See Driver.body_begin."""
        graph, before = self._recorded(stream)
        around = self._around.setdefault(stream, [])
        around.append((graph, 0))  # whoever gives up from here on destroys it
        self._end(stream)
        node = _Node(
            type=_CONDITIONAL, handle=condition, kind=_WHILE if repeats else _IF, size=1, context=self._context()
        )
        made, count = ctypes.c_void_p(), len(before)
        dependencies = (ctypes.c_void_p * max(count, 1))(*before)
        add = ("cuGraphAddNode", ctypes.byref(made), ctypes.c_void_p(graph), dependencies, ctypes.c_size_t(count))
        self._call(*add, ctypes.byref(node))
        around[-1] = graph, made.value or 0
        self._go_on(stream, node.bodies[0] or 0, ())

    def end(self, stream: int) -> None:
        """See Driver.body_end."""
        self._end(stream)
        graph, node = self._around[stream][-1]
        self._go_on(stream, graph, (node,))
        self._around[stream].pop()
        if not self._around[stream]:
            del self._around[stream]

    def leave(self, stream: int) -> bool:
        """Give up a recording within a body: end it and destroy what was recorded. False where the stream is in no body."""
        around = self._around.pop(stream, None)
        if around is None:
            return False
        try:
            self._end(stream)
        except CudaError as error:
            if error.status not in (401, *range(900, 911)):  # it was broken, or had ended
                raise
        self._call("cuGraphDestroy", ctypes.c_void_p(around[0][0]))
        return True

    def _recorded(self, stream: int) -> tuple[int, list[int]]:
        """The graph that a stream records, and the nodes that come before what it records next."""
        status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
        nodes, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()
        found = [ctypes.byref(x) for x in (status, number, graph, nodes, count)]
        self._call("cuStreamGetCaptureInfo_v2", ctypes.c_void_p(stream), *found)
        if status.value != 1:
            raise CudaError("cuStreamGetCaptureInfo", 901 if status.value else 401, "the stream records nothing")
        return graph.value or 0, [nodes[i] or 0 for i in range(count.value)]

    def _context(self) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(found))
        return found

    def _end(self, stream: int) -> None:
        self._call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(ctypes.c_void_p()))

    def _go_on(self, stream: int, graph: int, after: Sequence[int]) -> None:
        nodes = (ctypes.c_void_p * max(len(after), 1))(*after)
        what = (ctypes.c_void_p(stream), ctypes.c_void_p(graph), nodes if after else None, None)
        self._call("cuStreamBeginCaptureToGraph", *what, ctypes.c_size_t(len(after)), ctypes.c_int(_THREAD_LOCAL))

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self._library, name)(*args)
        if status:
            raise CudaError(name, status)
