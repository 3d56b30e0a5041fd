"""The laws of executors, passes and forms of graphs: graphdock's own hold them, and each planted fault is found by one of them."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import GraphFormat, GraphRead, ImportReport, Pass, Placer, Rewriter, hookimpl
from graphdock.plugin.host import Host
from graphdock_opgen.new_files import render
from graphdock_testing.case import ConformanceError, Refused, Untested
from graphdock_testing.conformance import Conformance
from graphdock_testing.laws import (
    CHANGES,
    DAMAGE,
    LAWS,
    OUTPUTS,
    check_executor,
    check_graph_format,
    check_pass,
    check_placer,
)


def interpreter(*changes):
    """The executor of `graphdock new plugin mine --executor`, with changes of its source."""
    source = render("executor/executor.py", name="mine", title="Mine")
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    names = {"__name__": "mine"}
    exec(compile(source, "mine.py", "exec"), names)
    return names["MineExecutor"]()


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
@pytest.mark.parametrize("name", ["straight_line", "dataflow"])
@pytest.mark.sampled(2)
def test_executors_that_are_right(law, name):
    check_executor(name, law)


def test_the_executor_of_the_scaffold_is_right_and_refuses_by_name(plugged):
    plugged("register_executors", interpreter())
    assert found(check_executor, "mine") == []
    with pytest.raises(Refused, match="the executor mine can't run While"):
        check_executor("mine", "loops")


def test_a_law_that_fails_is_one_line_and_leaves_no_session_to_the_collector(plugged):
    """A session that the collector closes, while pytest reads the source of a failure, ended whole runs."""
    wide = "np.array(run.get(v, HOST_MEMORY), np.float64)[()]"
    plugged("register_executors", interpreter(("np.array(run.get(v, HOST_MEMORY))[()]", wide)))
    with pytest.raises(ConformanceError) as caught:
        check_executor("mine", "sums")
    assert str(caught.value) == "'sums' on the executor mine, step 1: result 0 is float64(4, 3), not float32(4, 3)"
    assert tf.get_default_session() is None, "though the traceback of the error is still there"


@pytest.mark.parametrize("form", ["JSON", "GraphDef"])
def test_forms_that_are_right(plugged, form):
    assert found(check_graph_format, form) == []


@pytest.mark.parametrize("form", ["JSON", "GraphDef", "frames"])
def test_forms_read_what_outputs_need_and_refuse_damaged_text(form):
    check_graph_format(form, OUTPUTS)
    if form == "JSON":
        check_graph_format(form, DAMAGE)
    else:
        with pytest.raises(Refused, match="is no text"):
            check_graph_format(form, DAMAGE)


def test_placers_that_are_right(plugged):
    assert found(check_placer, "simulated") == []


def test_a_placer_that_forgets_what_it_chose_is_found(plugged):
    class Fickle(Placer):
        name = "fickle"
        turn = 0

        def place(self, problem):
            self.turn += 1
            return {i: may[self.turn % len(may)] for i, may in enumerate(problem.groups)}

    plugged("register_placers", Fickle())
    with pytest.raises(ConformanceError, match="gave one plan two placements"):
        check_placer("fickle", "kernels")


def test_passes_that_are_right(plugged):
    assert found(check_pass, "patterns") == []


def test_a_pass_that_changes_results_is_found(plugged):
    def drop(graph, context):
        with Rewriter(graph) as change:
            for node in graph.nodes:
                if node.op == "Tanh":
                    change.replace(node, [node.inputs[0]])

    plugged("register_passes", Pass("drop", "simplify", 45, "takes tanh for nothing", drop))
    assert found(check_pass, "drop") == ["training", "gradients of loops"]


def _undone(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Sign" and node.inputs[0].node is not None and node.inputs[0].node.op == "Sign":
                change.replace(node, [node.inputs[0].node.outputs[0]])


def test_a_pass_that_changes_no_plan_is_untested(plugged):
    idle = Pass("idle", "simplify", 45, "does nothing", lambda graph, context: None)
    undone = Pass("undone", "simplify", 45, "forwards the sign of a sign", _undone)
    plugged("register_passes", idle, undone)
    assert found(check_pass, "idle") == []
    with pytest.raises(Untested, match=f"the pass idle changed none of the {len(LAWS)} samples"):
        check_pass("idle", CHANGES)
    check_pass("undone", CHANGES)


def _zero(graph, context):
    """Take a difference of a value and itself for zero, which it is not of NaN and infinities."""
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Sub" and node.inputs[0] is node.inputs[1] and node.inputs[0].dtype.name == "float64":
                zeros = context.constant(node, node.outputs[0], np.zeros(node.outputs[0].shape))
                change.replace(node, change.insert(zeros, before=node).outputs)


def _differences(rng):
    x = tf.placeholder(tf.float64, [int(rng.integers(2, 6))])
    return x - x, {x: rng.normal(size=x.shape.as_list())}


def test_a_pass_is_held_to_graphs_of_its_own_sample(plugged):
    def idle(rng):
        x = tf.placeholder(tf.float32, [2])
        return x + 1.0, {x: [1.0, 2.0]}

    def broken(rng):
        raise KeyError("x")

    signs = {"phase": "simplify", "order": 45, "summary": "forwards the sign of a sign", "run": _undone}
    plugged(
        "register_passes",
        Pass("zero", "simplify", 45, "takes x - x for zero", _zero, sample=_differences),
        Pass("beside", sample=idle, **signs),
        Pass("breaks", sample=broken, **signs),
    )
    with pytest.raises(ConformanceError, match="sample . with the pass zero, step 1: result 0 is .*, not .*nan"):
        check_pass("zero", CHANGES)
    with pytest.raises(Untested, match="the pass beside changed none of the 8 graphs of its own sample"):
        check_pass("beside", CHANGES)
    with pytest.raises(ConformanceError, match="the sample of the pass breaks.*KeyError"):
        check_pass("breaks", CHANGES)


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
    assert found(check_graph_format, "negates") == ["kernels", "sums"]
    with pytest.raises(Refused, match="no effects"):
        check_graph_format("negates", "random")


def test_the_kit_of_a_package_holds_its_executors_passes_and_forms_to_the_laws():
    parts = {plugin: Conformance(plugin).parts for plugin in ("executor", "dataflow", "tensorflow")}
    assert parts["executor"] == ["executor straight_line"] and parts["dataflow"] == ["executor dataflow"]
    assert parts["tensorflow"][:2] == ["graph format GraphDef", "graph format JSON"]
    assert "pass patterns" in Conformance("fusion").parts
    assert Conformance("planner").parts == ["placer simulated"]
    kit = Conformance("dataflow")
    cases = [case for case in kit.cases("executor dataflow")]
    assert [case.id for case in cases] == [f"executor dataflow[{law}]" for law in LAWS]
    kit.check(cases[0])
    assert kit.against("executor dataflow") == "laws"


def test_the_kit_finds_what_the_laws_find():
    """In a host of its own, whatever the process's has."""
    host = Host()
    hook = hookimpl(specname="register_executors")
    wrong = interpreter(("stream.begin(ordinals[name.name])", "stream.begin(0)"))
    host.register("author", type("Plugin", (), {"hook": staticmethod(hook(lambda: [wrong]))})())
    kit = Conformance("author", host=host)
    said = {}
    for case in kit.cases("executor mine"):
        try:
            kit.check(case)
        except (ConformanceError, Refused) as error:
            said[case.data["check"]] = type(error)
    assert said["random"] is ConformanceError and said["loops"] is Refused and "kernels" not in said
