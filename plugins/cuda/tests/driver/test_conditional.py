"""Conditional nodes by the driver's library, against one that plays streams and graphs and notes what it is asked."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from graphdock_cuda.driver.conditional import Conditionals
from graphdock_cuda.driver.errors import CudaError

STREAM, GRAPH, CONTEXT = 0x5000, 0x6000, 0xC0
OLD = ("cuGraphConditionalHandleCreate", "cuStreamBeginCaptureToGraph")


class Library:
    """One stream, which records ``GRAPH``. ``failing``: the call that fails from now on; ``done``: what was asked for, in order."""

    def __init__(self) -> None:
        self.graph: int | None = GRAPH
        self.last = [0x11, 0x12]
        self.failing = ""
        self.done: list[tuple[Any, ...]] = []
        self.bodies: list[Any] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cu") and name == super().__getattribute__("failing"):
            return lambda *_: 2
        return super().__getattribute__(name)

    def cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = CONTEXT
        return 0

    def cuStreamGetCaptureInfo_v2(
        self, stream: Any, status: Any, number: Any, graph: Any, nodes: Any, count: Any
    ) -> int:
        assert stream.value == STREAM
        status._obj.value = self.graph is not None
        graph._obj.value, count._obj.value = self.graph, len(self.last)
        self.nodes = (ctypes.c_void_p * max(len(self.last), 1))(*self.last)
        nodes._obj.contents = ctypes.cast(self.nodes, ctypes.POINTER(ctypes.c_void_p)).contents
        return 0

    def cuGraphConditionalHandleCreate(self, handle: Any, graph: Any, context: Any, value: Any, flags: Any) -> int:
        handle._obj.value = 0x77
        self.done.append(("condition", graph.value, context.value, value.value, flags.value))
        return 0

    def cuStreamEndCapture(self, stream: Any, graph: Any) -> int:
        assert stream.value == STREAM
        if self.graph is None:
            return 401
        self.done.append(("end", self.graph))
        self.graph = None
        return 0

    def cuGraphAddNode(self, made: Any, graph: Any, nodes: Any, count: Any, node: Any) -> int:
        raw = ctypes.string_at(ctypes.addressof(node._obj), 256)
        kind, handle = int.from_bytes(raw[:4], "little"), int.from_bytes(raw[16:24], "little")
        how, size = int.from_bytes(raw[24:28], "little"), int.from_bytes(raw[28:32], "little")
        assert ctypes.sizeof(node._obj) == 256 and raw[4:16] == bytes(12) and raw[48:] == bytes(208)
        assert (kind, size, int.from_bytes(raw[40:48], "little")) == (13, 1, CONTEXT)
        self.bodies.append((ctypes.c_void_p * 1)(0xB0 + len(self.bodies)))
        node._obj.bodies = ctypes.cast(self.bodies[-1], ctypes.POINTER(ctypes.c_void_p))
        made._obj.value = 0xA0
        self.done.append(("node", graph.value, list(nodes[: count.value]), handle, how))
        return 0

    def cuStreamBeginCaptureToGraph(self, stream: Any, graph: Any, nodes: Any, data: Any, count: Any, mode: Any) -> int:
        assert (stream.value, data, mode.value) == (STREAM, None, 1)
        self.graph, self.last = graph.value, list(nodes[: count.value]) if count.value else []
        self.done.append(("go on", self.graph, self.last))
        return 0

    def cuGraphDestroy(self, graph: Any) -> int:
        self.done.append(("destroy", graph.value))
        return 0


@pytest.mark.parametrize(("repeats", "kind"), [(False, 0), (True, 1)])
def test_a_body_is_recorded_on_the_stream_of_the_graph_around_it(repeats: bool, kind: int) -> None:
    library = Library()
    found = Conditionals(library)
    assert found.missing() == "" and found.condition(STREAM) == 0x77
    found.begin(STREAM, 0x77, repeats)
    found.end(STREAM)
    assert not found.leave(STREAM)
    assert library.done == [
        ("condition", GRAPH, CONTEXT, 0, 0),
        ("end", GRAPH),
        ("node", GRAPH, [0x11, 0x12], 0x77, kind),
        ("go on", 0xB0, []),
        ("end", 0xB0),
        ("go on", GRAPH, [0xA0]),
    ]


def test_a_body_within_a_body_belongs_to_its_graph() -> None:
    library = Library()
    found = Conditionals(library)
    found.begin(STREAM, 1, True)
    found.condition(STREAM)
    found.begin(STREAM, 2, False)
    found.end(STREAM)
    assert library.graph == 0xB0 and library.done[3] == ("condition", 0xB0, CONTEXT, 0, 0)
    assert library.done[5] == ("node", 0xB0, [], 2, 0)
    found.end(STREAM)
    assert library.graph == GRAPH


@pytest.mark.parametrize("failing", ["", "cuGraphAddNode", "cuStreamBeginCaptureToGraph", "cuStreamEndCapture"])
def test_what_is_given_up_within_a_body_is_destroyed_as_a_whole(failing: str) -> None:
    library = Library()
    found = Conditionals(library)
    if failing == "":
        found.begin(STREAM, 1, False)
        found.begin(STREAM, 2, False)
    else:
        library.failing = failing
        with pytest.raises(CudaError, match=failing):
            found.begin(STREAM, 1, False)
        library.failing = ""
    assert found.leave(STREAM) and not found.leave(STREAM)
    assert library.graph is None and library.done[-1] == ("destroy", GRAPH)


def test_a_stream_that_records_nothing_has_no_condition() -> None:
    library = Library()
    library.graph = None
    with pytest.raises(CudaError, match="records nothing") as error:
        Conditionals(library).condition(STREAM)
    assert error.value.status == 401


def test_an_older_driver_lacks_the_calls() -> None:
    class Old:
        cuCtxGetCurrent = cuGraphAddNode = cuGraphDestroy = cuStreamEndCapture = cuStreamGetCaptureInfo_v2 = None

    assert Conditionals(Old()).missing() == f"the driver lacks {', '.join(OLD)}"
