"""The functions of patterns as graphs: traced once, with the gradients that there are, simplified like a program."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import graphdock as tf
import numpy as np
from graphdock.contracts import CONSTANT, Found, Operand, Pattern, PlanContext, RegisteredPattern, hookimpl
from graphdock.errors import NotFoundError
from graphdock.planning.decompose import trace
from graphdock.plugin.host import Host, default_host
from graphdock_fusion.patterns.graphs import WIDTHS, PatternGraphs

CALLS = []


def scaled(x, n, factor):
    CALLS.append(type(factor).__name__)
    return tf.exp(x) * factor + tf.cast(n, x.dtype)


REGISTERED = RegisteredPattern(
    "lab",
    "lab",
    Pattern(
        "scaled",
        "Exp",
        {"x": Operand((None, None)), "n": Operand((None,), "int32"), "factor": CONSTANT},
        scaled,
        lambda x, n, factor: scaled(x, n, float(factor)),
    ),
)
PLACE = Found("float32", {"x": (2, 3), "n": (3,), "factor": ()}, {"factor": np.float32(4.0)}, "cpu")


def graphs_of(simplified, settings=()):
    """The graphs of a session that simplifies nothing."""
    host = default_host()
    context = PlanContext(
        lambda node: None,
        host.ops.get,
        host.ops.get("Const"),
        trace=lambda build: trace(host, build),
        simplify=simplified.append,
        shared=host.shared.setdefault("fusion", {}),
        lock=host.shared_lock,
        settings=settings,
    )
    return PatternGraphs(context)


def make():
    CALLS.clear()
    simplified = []
    default_host().shared.clear()
    return graphs_of(simplified), simplified


def test_what_is_looked_for_has_open_dims_and_an_input_per_name():
    graphs, simplified = make()
    graph = graphs.pattern_graph(REGISTERED, "float16")
    assert {n: (v.dtype.name, v.shape) for n, v in graph.inputs.items()} == {
        "x": ("float16", (None, None)),
        "n": ("int32", (None,)),
        "factor": ("float16", ()),
    }
    assert (graph.values[0].dtype.name, graph.values[0].shape, graph.gradients) == ("float16", (None, None), {})
    assert simplified == [graph.graph]
    assert graphs.pattern_graph(REGISTERED, "float16") is graph and len(CALLS) == 1


def test_at_a_place_there_are_gradients_by_what_is_smooth():
    graphs, _ = make()
    graph = graphs.specialized_pattern(REGISTERED, PLACE, 0)
    assert set(graph.inputs) == {"x", "n"} and set(graph.gradients) == {"x"}  # integers and constants have none
    assert graph.cotangents[0].shape == (2, 3) and graph.cotangents[0] is graph.graph.inputs[-1]
    assert graph.gradients["x"].shape == (2, 3)
    other = Found("float32", PLACE.shapes, {"factor": np.float32(5.0)}, "cpu")
    assert graphs.specialized_pattern(REGISTERED, other, 0) is not graph
    assert graphs.specialized_pattern(REGISTERED, PLACE, 0) is graph


def test_attributes_of_the_anchor_are_arguments_and_make_other_graphs():
    graphs, _ = make()
    given = []

    def leaky(x, alpha):
        given.append(alpha)
        return tf.nn.leaky_relu(x, alpha)

    pattern = Pattern("leaky", "LeakyRelu", {"x": Operand((None,))}, leaky, leaky, attrs=("alpha",))
    registered = RegisteredPattern("lab", "lab", pattern)
    first = graphs.pattern_graph(registered, "float32", {"alpha": 0.5})
    assert graphs.pattern_graph(registered, "float32", {"alpha": 0.25}) is not first
    assert graphs.pattern_graph(registered, "float32", {"alpha": 0.5}) is first
    assert given == [0.5, 0.25]


def test_an_operand_has_the_dtype_that_the_anchor_says():
    graphs, _ = make()

    def counted(x, Tidx):
        return tf.reduce_sum(tf.cast(x, tf.float32))

    pattern = Pattern("counted", "Sum", {"x": Operand((None,), "Tidx")}, counted, counted, attrs=("Tidx",))
    registered = RegisteredPattern("lab", "lab", pattern)
    for dtype in (tf.int32, tf.int64):
        assert graphs.pattern_graph(registered, "float32", {"Tidx": dtype}).inputs["x"].dtype is dtype


def test_what_stands_for_it_has_the_gradients_that_are_asked_for_and_numbers_as_arrays():
    graphs, _ = make()
    assert graphs.replacement_graph(REGISTERED, PLACE, ()).cotangents == {}
    assert graphs.replacement_graph(REGISTERED, PLACE, ("x",)).gradients.keys() == {"x"}
    assert CALLS == ["float", "float"]


def test_what_cannot_be_built_says_why():
    graphs, _ = make()
    wrong = Found("float32", {"x": (2, 3), "n": (5,), "factor": ()}, PLACE.constants, "cpu")
    assert graphs.specialized_pattern(REGISTERED, wrong, 0).startswith("it could not be built: ")


def test_gradients_are_built_with_as_many_open_dims_as_people_leave():
    """Where a gradient has to be summed is then known in other ways."""
    graphs, _ = make()
    made = [graphs.specialized_pattern(REGISTERED, PLACE, wide) for wide in WIDTHS]
    assert len({id(g) for g in made}) == len(WIDTHS) and {g.values[0].shape for g in made} == {(2, 3)}


def test_what_cannot_be_built_is_tried_again():
    graphs, _ = make()
    known, held = [], []

    def late(x):
        held.append(default_host().shared_lock._is_owned())  # functions of patterns are called under the host's lock
        if not known:
            raise NotFoundError("not yet")
        return tf.exp(x)

    registered = RegisteredPattern("lab", "lab", Pattern("late", "Exp", {"x": Operand((None,))}, late, late))
    assert graphs.pattern_graph(registered, "float32") == "it could not be built: not yet"
    known.append("it")
    assert graphs.pattern_graph(registered, "float32").values[0].shape == (None,)
    assert held == [True, True]


def test_sessions_with_equal_settings_share_what_is_traced():
    graphs, simplified = make()
    first = graphs.specialized_pattern(REGISTERED, PLACE, 0)
    assert graphs_of(simplified).specialized_pattern(REGISTERED, PLACE, 0) is first
    assert graphs_of(simplified, ("other",)).specialized_pattern(REGISTERED, PLACE, 0) is not first
    assert len(CALLS) == len(simplified) == 2


def test_a_pattern_with_other_inputs_of_the_same_name_is_another_one():
    graphs, _ = make()
    wider = {**REGISTERED.pattern.inputs, "x": Operand((None, None, None))}
    other = dataclasses.replace(REGISTERED, pattern=dataclasses.replace(REGISTERED.pattern, inputs=wider))
    shapes = [graphs.pattern_graph(each, "float32").inputs["x"].shape for each in (REGISTERED, other)]
    assert shapes == [(None, None), (None, None, None)]


def test_many_threads_trace_a_function_once():
    _, simplified = make()
    together = threading.Barrier(6)

    def ask():
        graphs = graphs_of(simplified)
        together.wait()
        return graphs.specialized_pattern(REGISTERED, PLACE, 1)

    with ThreadPoolExecutor(6) as pool:
        found = [f.result() for f in [pool.submit(ask) for _ in range(6)]]
    assert len({id(graph) for graph in found}) == 1 and len(CALLS) == len(simplified) == 1


class Scaling:
    """A plugin with the pattern."""

    @staticmethod
    @hookimpl
    def register_patterns():
        return [REGISTERED.pattern]


def test_the_second_session_of_a_host_traces_none(process_host):
    host = process_host(Host())
    host.register("lab", Scaling)
    CALLS.clear()

    def traced(debug=False, **fields):
        before = len(CALLS)
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [2, 3])
            y = scaled(x, np.arange(3), np.float32(4.0))
            fetches = [y, *tf.gradients(y, [x])]
            made = len(CALLS)
            with tf.Session(config=tf.SessionConfig(debug=debug, **fields), host=host) as session:
                got = session.run(fetches, {x: np.ones((2, 3))})
            np.testing.assert_allclose(got[0], np.e * 4.0 + np.arange(3) * np.ones((2, 1)), rtol=1e-6)
            np.testing.assert_allclose(got[1], np.full((2, 3), np.e * 4.0), rtol=1e-6)
        assert made == before + 1  # the program itself
        return len(CALLS) - made

    assert traced() > 0
    assert traced() == 0
    assert traced(passes={"cse": False}) > 0  # other graphs come of other passes
    assert traced(debug=True) > 0  # which checks each graph
    assert traced(check_numerics=True) > 0  # folds less
    assert traced(passes={"cse": True}) == 0  # what it is anyway
    host.discard("lab", "lab")
    assert not host.shared
