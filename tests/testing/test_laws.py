"""The laws of executors, passes and forms of graphs: graphdock's own hold them, and each planted fault is found by one of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import graphdock as tf
import pytest
from graphdock.contracts import HOST_MEMORY, Executor, GraphFormat, GraphRead, ImportReport, Pass, Rewriter, hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.case import ConformanceError, Refused
from graphdock_testing.laws import LAWS, check_executor, check_graph_format, check_pass

sys.path.insert(0, str(Path(__file__).parents[1] / "laws"))
from shuffling_executor import ShuffledProgram, ShufflingExecutor, _Run


@pytest.fixture
def plugged(process_host):
    """Registers items of one hook in a host of the test's own."""
    host = process_host(Host())

    def plug(hook, *items):
        def implementation():
            return list(items)

        implementation.__name__ = hook
        host.register("author", type("Plugin", (), {hook: staticmethod(hookimpl(implementation))})())

    return plug


def found(check, name):
    """The laws that do not hold."""
    laws = []
    for law in LAWS:
        try:
            check(name, law)
        except Refused:
            pass
        except ConformanceError:
            laws.append(law)
    return laws


@pytest.mark.parametrize("law", LAWS)
def test_executors_that_are_right(plugged, law):
    plugged("register_executors", ShufflingExecutor(3))
    check_executor("straight_line", law)
    check_executor("shuffling", law)


@pytest.mark.parametrize("form", ["JSON", "GraphDef"])
def test_forms_that_are_right(plugged, form):
    assert found(check_graph_format, form) == []


def test_passes_that_are_right(plugged):
    assert found(check_pass, "patterns") == []


class Wrapped(Executor):
    """The shuffling executor with a fault."""

    name = "faulty"

    def __init__(self, fault):
        self.fault = fault

    def compile(self, placed):
        return FAULTS[self.fault](placed, ShufflingExecutor(1))


class NoOrder(ShuffledProgram):
    def _edges(self, level):
        return {n: {v.node for v in n.inputs if v.node is not None} for n in level.nodes}


class NoToken(ShuffledProgram):
    def run(self, step, feeds):
        class Deaf:
            check = staticmethod(lambda: None)

        class Step:
            def __getattr__(self, name):
                return Deaf if name == "token" else getattr(step, name)

            def __setattr__(self, name, value):
                setattr(step, name, value)

        return _Run(self, Step()).results(feeds)


class Aliases(ShuffledProgram):
    def run(self, step, feeds):
        run, graph = _Run(self, step), self.placed.graph
        run.values.update(zip(graph.inputs, feeds, strict=True))
        run.level(graph)
        return [run.get(v, HOST_MEMORY) for v in graph.outputs]


class SameNumbers(ShuffledProgram):
    def run(self, step, feeds):
        run = _Run(self, step)
        for streams in run.streams.values():
            for stream in streams:
                stream.begin(0)
        return run.results(feeds)


class Unnamed(ShuffledProgram):
    def run(self, step, feeds):
        try:
            return super().run(step, feeds)
        except tf.errors.GraphdockError as error:
            raise tf.errors.InternalError(error.message) from None


class FirstBranch(ShuffledProgram):
    def run(self, step, feeds):
        run = _Run(self, step)
        get = run.get

        def decided(value, space):
            return True if space == "scalar" and value.dtype.name == "bool" else get(value, space)

        run.get = decided
        return run.results(feeds)


FAULTS = {
    "no order": NoOrder,
    "no token": NoToken,
    "aliases": Aliases,
    "same numbers": SameNumbers,
    "unnamed errors": Unnamed,
    "first branch": FirstBranch,
}


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("no order", "updates"),
        ("no token", "kernels"),
        ("aliases", "aliases"),
        ("same numbers", "random"),
        ("unnamed errors", "errors"),
        ("first branch", "branches"),
    ],
)
def test_a_fault_of_an_executor_is_found(plugged, fault, law):
    plugged("register_executors", Wrapped(fault))
    with pytest.raises(ConformanceError):
        check_executor("faulty", law)


def test_a_pass_that_changes_results_is_found(plugged):
    def drop(graph, context):
        with Rewriter(graph) as change:
            for node in graph.nodes:
                if node.op == "Tanh":
                    change.replace(node, [node.inputs[0]])

    plugged("register_passes", Pass("drop", "simplify", 45, "takes tanh for nothing", drop))
    assert found(check_pass, "drop") == ["training", "gradients of loops"]


class Negates(GraphFormat):
    """A form that writes another op, or can't write."""

    name, summary = "negates", "a form with a fault"

    def accepts(self, value):
        return isinstance(value, list)

    def read(self, value, ops, mapped=(), outputs=()):
        return GraphRead(value[0], ImportReport())

    def write(self, graph, add_shapes=False):
        if any(op.op_def.effects for op in graph.get_operations()):
            raise tf.errors.UnimplementedError("no effects")
        data = json.loads(graph.as_graph_def(form="JSON"))
        for node in data["nodes"]:
            node["op"] = {"Relu": "Tanh"}.get(node["op"], node["op"])
        return [data]


def test_a_form_that_changes_a_graph_is_found(plugged):
    plugged("register_graph_formats", Negates())
    assert found(check_graph_format, "negates") == ["kernels"]
    with pytest.raises(Refused, match="no effects"):
        check_graph_format("negates", "random")
