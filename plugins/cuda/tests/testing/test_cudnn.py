"""The fake of cuDNN's front end finds what goes wrong on a GPU; what it computes is shown by tests/driver/test_cudnn.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphdock_cuda.testing import FakeCudnn
from graphdock_cuda.testing.cudnn import ENGINES
from graphdock_cuda.testing.state import Misuse


def _graph(library: Any, handle: int, engine: str = "plain", **changes: Any) -> tuple[Any, list[int]]:
    """A graph of one window of one element over [1, 1, 2, 2], with the numbers of x, w and y; every engine but one is taken out."""
    kinds, notes = library.data_type, library.numerical_note
    graph = library.pygraph(
        io_data_type=kinds.FLOAT,
        intermediate_data_type=kinds.FLOAT,
        compute_data_type=kinds.FLOAT,
        handle=handle,
        sm_version=90,
    )
    stride = changes.get("stride", [4, 4, 2, 1])
    x = graph.tensor(name="x", dim=[1, 1, 2, 2], stride=stride, data_type=changes.get("kind", kinds.FLOAT))
    w = graph.tensor(name="w", dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], data_type=kinds.FLOAT)
    window = {"pre_padding": [0, 0], "post_padding": [0, 0], "stride": [1, 1], "dilation": [1, 1]}
    y = graph.conv_fprop(x, w, **window, compute_data_type=kinds.FLOAT)
    y.set_output(True)
    y.set_dim([1, 1, 2, 2])
    y.set_stride(stride)
    y.set_data_type(kinds.FLOAT)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([library.heur_mode.A])
    graph.deselect_numeric_notes([n for n in notes if n not in ENGINES[engine][0]])
    graph.deselect_workspace_greater_than(max(ENGINES[engine][1], 512))
    graph.check_support()
    graph.build_plans()
    return graph, [t.get_uid() for t in (x, w, y)]


@pytest.fixture
def ready(rig: Any) -> Any:
    """Library, handle with a stream, a graph, its operands."""
    library = FakeCudnn(rig.driver)
    handle = library.create_handle()
    library.set_stream(handle=handle, stream=rig.s)
    graph, numbers = _graph(library, handle)
    places = [rig.put(np.full(n, 3, np.float32)) for n in (4, 1, 4)]
    return library, handle, graph, dict(zip(numbers, places, strict=True))


@pytest.mark.parametrize("engine", [e for e in ENGINES if e != "large"])
def test_engines_that_break_promises_compute_something_else(rig: Any, ready: Any, engine: str) -> None:
    library, handle, _, operands = ready
    graph, numbers = _graph(library, handle, engine)
    assert graph.engine == engine
    places = list(operands.values())
    graph.execute(dict(zip(numbers, places, strict=True)), rig.put(np.zeros(4096, "u1")), handle=handle)
    assert (rig.get(places[2], 4, "f4") == (9 if engine in ("plain", "tensor cores") else 18)).all()


def test_the_workspace_is_written(rig: Any, ready: Any) -> None:
    _, handle, graph, operands = ready
    room = rig.put(np.zeros(1024, "u1"))
    graph.execute(operands, room, handle=handle)
    assert (rig.get(room, 1024, "u1") != 0).sum() == graph.get_workspace_size() == 512


@pytest.mark.parametrize(
    "bad", ["misaligned", "short", "workspace", "pinned", "operands", "handle", "destroyed stream"]
)
def test_what_a_step_must_not_do(rig: Any, ready: Any, bad: str) -> None:
    library, handle, graph, operands = ready
    d, room = rig.driver, rig.put(np.zeros(512, "u1"))
    first = next(iter(operands))
    if bad == "misaligned":
        operands[first] = rig.put(np.zeros(8, "f4")) + 4
    elif bad == "short":
        operands[first] = rig.put(np.zeros(3, "f4"))
    elif bad == "workspace":
        room = rig.put(np.zeros(511, "u1"))
    elif bad == "pinned":
        operands[first] = d.host_alloc(64)
    elif bad == "operands":
        operands.pop(first)
    elif bad == "handle":
        handle = library.create_handle()
    else:
        stream = d.stream()
        library.set_stream(handle=handle, stream=stream)
        d.stream_destroy(stream)
    with pytest.raises(Misuse):
        graph.execute(operands, room, handle=handle)


def test_a_handle_takes_streams_of_its_device_alone(rigs: Any) -> None:
    rig = rigs(gpus=2)
    library = FakeCudnn(rig.driver)
    rig.driver.set_device(1)
    handle = library.create_handle()
    with pytest.raises(Misuse, match="a handle of cuda:1"):
        library.set_stream(handle=handle, stream=rig.s)


def test_calls_out_of_order(ready: Any) -> None:
    library, handle, graph, _ = ready
    with pytest.raises(Misuse, match="build_plans at another place"):
        library.pygraph(
            io_data_type=None, intermediate_data_type=None, compute_data_type=None, handle=handle, sm_version=90
        ).build_plans()
    with pytest.raises(Misuse, match="validate at another place"):
        graph.validate()


@pytest.mark.parametrize(
    ("changes", "reason"), [({"stride": [4, 1, 1, 2]}, "layouts"), ({"kind": FakeCudnn.data_type.HALF}, "data types")]
)
def test_what_no_engine_takes(rig: Any, changes: dict[str, Any], reason: str) -> None:
    library = FakeCudnn(rig.driver)
    with pytest.raises(library.cudnnGraphNotSupportedError, match=reason):
        _graph(library, library.create_handle(), **changes)
