"""The functions of patterns as graphs: traced once, with the gradients that there are, simplified like a program."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock.contracts import CONSTANT, Found, Operand, Pattern
from graphdock.plugin.host import default_host
from graphdock.plugin.registry import RegisteredPattern
from graphdock.runtime.pattern_graphs import WIDTHS, PatternGraphs

CALLS = []


def scaled(x, n, factor):
    CALLS.append(type(factor).__name__)
    return tf.exp(x) * factor + tf.cast(n, x.dtype)


ASKED = RegisteredPattern(
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


def make():
    CALLS.clear()
    simplified = []
    return PatternGraphs(default_host(), simplified.append), simplified


def test_what_is_looked_for_has_open_dims_and_an_input_per_name():
    graphs, simplified = make()
    graph = graphs.sought(ASKED, "float16")
    assert {n: (v.dtype.name, v.shape) for n, v in graph.inputs.items()} == {
        "x": ("float16", (None, None)),
        "n": ("int32", (None,)),
        "factor": ("float16", ()),
    }
    assert (graph.value.dtype.name, graph.value.shape, graph.slopes) == ("float16", (None, None), {})
    assert simplified == [graph.graph]
    assert graphs.sought(ASKED, "float16") is graph and len(CALLS) == 1


def test_at_a_place_there_are_gradients_by_what_is_smooth():
    graphs, _ = make()
    graph = graphs.sought_at(ASKED, PLACE, 0)
    assert set(graph.inputs) == {"x", "n"} and set(graph.slopes) == {"x"}  # integers and constants have none
    assert graph.arriving.shape == (2, 3) and graph.arriving is graph.graph.inputs[-1]
    assert graph.slopes["x"].shape == (2, 3)
    other = Found("float32", PLACE.shapes, {"factor": np.float32(5.0)}, "cpu")
    assert graphs.sought_at(ASKED, other, 0) is not graph
    assert graphs.sought_at(ASKED, PLACE, 0) is graph


def test_what_stands_for_it_has_the_gradients_that_are_asked_for_and_numbers_as_arrays():
    graphs, _ = make()
    assert graphs.standing(ASKED, PLACE, ()).arriving is None
    assert graphs.standing(ASKED, PLACE, ("x",)).slopes.keys() == {"x"}
    assert CALLS == ["float", "float"]


def test_what_cannot_be_built_says_why():
    graphs, _ = make()
    wrong = Found("float32", {"x": (2, 3), "n": (5,), "factor": ()}, PLACE.constants, "cpu")
    assert graphs.sought_at(ASKED, wrong, 0).startswith("it could not be built: ")


def test_gradients_are_built_with_as_many_open_dims_as_people_leave():
    """Where a gradient has to be summed is then known in other ways."""
    graphs, _ = make()
    made = [graphs.sought_at(ASKED, PLACE, wide) for wide in WIDTHS]
    assert len({id(g) for g in made}) == len(WIDTHS) and {g.value.shape for g in made} == {(2, 3)}
