"""Passes of plugins: one in each phase from a package of a third party, who is named for what goes wrong, and when they run."""

from __future__ import annotations

import sys
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import (
    KernelDef,
    KernelRefused,
    LoopNote,
    OpDef,
    Pass,
    Prepared,
    Replacement,
    Rewriter,
    hookimpl,
)
from graphdock.contracts.ir import Value, copy_node, make_node
from graphdock.contracts.opdef import ArgDef
from graphdock.contracts.passes import PHASES
from graphdock.errors import ConfigError, InvalidArgumentError, PluginError
from graphdock.passes.pipeline import known_passes, simplifications
from graphdock.plugin.host import Host

TIDY = Path(__file__).parents[1] / "packages" / "graphdock-tidy"
X = np.array([0.5, 1.0, 2.0], np.float32)


@pytest.fixture
def tidy(site, monkeypatch, process_host):
    """The package with a pass in each phase, installed."""
    monkeypatch.syspath_prepend(str(TIDY / "src"))
    site.project(TIDY)
    return process_host(Host())


def lab(*passes, process_host=None):
    """A host with these passes, of a third party."""
    host = Host()

    class Plugin:
        @hookimpl
        def register_passes(self):
            return passes

    host.register("lab", Plugin())
    return host


def explained(host, build, **fields):
    """What a session says of a plan, and its result."""
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [3], name="x")
        y = build(x)
        with tf.Session(config=tf.SessionConfig(**fields), host=host) as session:
            found = session.explain(y, {x: X})
            return found, session.run(y, {x: X})


def program(x):
    negated = tf.negative(tf.negative(x, name="in"), name="out")
    return [tf.exp(tf.negative(negated)) * 2.0, tf.log(x, name="log"), tf.constant([1.0]) + 1.0]


# -- a package of a third party


def test_a_package_has_a_pass_in_each_phase(tidy):
    passes = {name: row for name, row in known_passes(tidy).items() if row.plugin == "tidy"}
    assert [row.each.phase for row in passes.values()] == list(PHASES)
    assert "graphdock_tidy.passes" not in sys.modules, "imported for a plan that needs it"
    found, got = explained(tidy, program)
    np.testing.assert_allclose(got[0], 2 * np.exp(-X), rtol=1e-6)
    np.testing.assert_allclose(got[1], np.log(X), rtol=1e-6)
    ops = [n.op for n in found.plan.graph.nodes]
    assert "tidy.Decay" in ops and "CheckNumerics" in ops and not {"Neg", "Exp", "Mul"} & set(ops)
    assert "pass doublings: mul adds" in str(found)
    reports = [r["name"] for r in found.facts()["passes"]]
    assert {"negations", "doublings", "checked_logs", "decays", "large_first"} <= set(reports)
    assert found.kernels()["tidy.decay"] == 1


def test_a_pass_decides_about_loops(tidy):
    def looped(x):
        return tf.while_loop(lambda v: tf.reduce_sum(v) < 50.0, lambda v: v * 3.0, [x])

    found, got = explained(tidy, looped)
    plain, want = explained(tidy, looped, passes={"keep_loops": False})
    assert found.plan.loops == (LoopNote("while", 0, found.plan.loops[0].why),) and "stay in a body" in str(found)
    assert plain.plan.loops == ()
    np.testing.assert_array_equal(got, want)


def test_each_pass_can_be_switched_off(tidy):
    _, want = explained(tidy, program)
    for name in known_passes(tidy):
        found, got = explained(tidy, program, passes={name: False})
        assert name not in [r.name for r in found.plan.reports]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.raises(ConfigError, match="no pass named 'negation'") as caught:
        explained(tidy, program, passes={"negation": False})
    assert caught.value.hint == "did you mean 'negations'?"


def test_debug_mode_finds_nothing_wrong_with_them(tidy):
    explained(tidy, program, debug=True)


def test_options_of_a_plugin_reach_its_passes(tidy):
    found, _ = explained(tidy, program, options={"tidy": {"most": 0}})
    assert "doublings" not in str(found)
    with pytest.raises(ConfigError, match="out of bounds"):
        explained(tidy, program, options={"tidy": {"most": -1}})


def test_a_package_that_does_not_say_that_it_has_passes_is_refused_them(site, process_host):
    site.plugin(
        "silent",
        "from graphdock.contracts import hookimpl\n@hookimpl\ndef register_passes(): return []\n",
    )
    host = process_host(Host())
    assert "silent" not in {row.plugin for row in known_passes(host).values()}
    with pytest.raises(PluginError, match="implements 'register_passes', and its manifest does not say so"):
        host.backend("silent")


def test_passes_of_a_plugin_that_fails_take_no_part_and_it_is_said(site, process_host, builder, caplog):
    manifest = builder.MANIFEST.format(name="broken") + 'hooks = ["register_passes"]\n'
    site.plugin("broken", "raise RuntimeError('no such thing')\n", manifest=manifest)
    host = process_host(Host())
    _, got = explained(host, lambda x: x + 1.0)
    np.testing.assert_array_equal(got, X + 1)
    assert [r.getMessage() for r in caplog.records if "take no part" in r.getMessage()] == [
        "the passes of plugin broken take no part: import failed: RuntimeError: no such thing "
        "(graphdock_broken/plugin.py:1)"
    ]


# -- names and phases


def test_two_plugins_have_no_pass_of_one_name():
    one = Pass("same", "simplify", 1, "", lambda graph, context: None)
    host = lab(one)

    class Other:
        @hookimpl
        def register_passes(self):
            return [one]

    with pytest.raises(PluginError, match="brings the pass 'same', which plugin 'lab' has"):
        host.register("other", Other())


def test_the_names_of_the_hosts_own_passes_are_taken():
    host = lab(Pass("fold", "simplify", 1, "", lambda graph, context: None))
    with pytest.raises(PluginError, match="plugin 'lab' brings a pass 'fold', which is the name of graphdock's own"):
        known_passes(host)


def test_a_phase_that_there_is_not_suggests_the_nearest():
    with pytest.raises(PluginError, match="is for the phase 'simplfy'") as caught:
        lab(Pass("any", "simplfy", 1, "", lambda graph, context: None))
    assert "did you mean 'simplify'?" in str(caught.value.__cause__)


def test_passes_of_a_phase_stand_by_their_order():
    rows = [
        Pass("late", "simplify", 95, "", lambda graph, context: None),
        Pass("early", "simplify", 5, "", lambda graph, context: None),
    ]
    names = list(simplifications(lab(*rows)))
    assert names[0] == "early" and names.index("sums") < names.index("late") < names.index("products")


def test_a_pass_is_called_for_levels_that_hold_what_it_wants():
    seen = []
    each = Pass("seen", "simplify", 1, "", lambda g, c: seen.append(g.name), wants=lambda node: node.op == "Exp")
    host = lab(each)
    explained(host, lambda x: x + 1.0)
    assert not seen
    explained(host, lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.exp(x), lambda: x))
    assert seen and "main" not in seen


def test_a_rewrite_is_followed_by_the_simplifications():
    found, _ = explained(lab(Pass("useless", "rewrite", 1, "", _add_exp)), tf.exp)
    assert [n.op for n in found.plan.graph.nodes] == ["Exp"]


def _add_exp(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Exp" and not graph.targets:
                made = copy_node(node, node.inputs)
                made.name = made.outputs[0].name = "again"
                change.insert(made, before=node)


# -- faults


def _lose(graph, context):
    graph.nodes = [n for n in graph.nodes if n.op != "Neg"]


def _crosswise(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Neg":
                change.rebind(node, inputs=[n.outputs[0] for n in graph.nodes if n.op == "Exp"])


def _raises(graph, context):
    raise TypeError("no such thing")


@pytest.mark.parametrize("phase", [p for p in PHASES if p != "translate"])
@pytest.mark.parametrize(
    ("function", "what"),
    [
        (_lose, r"broke the plan: graph main, node Exp \(Exp\): reads"),
        (_crosswise, r"broke the plan: graph main"),
        (_raises, "failed: TypeError: no such thing"),
    ],
)
def test_a_pass_that_breaks_the_graph_or_raises_is_named(phase, function, what):
    with pytest.raises(PluginError, match=rf"the pass 'wrong' \(of .*\) {what}") as caught:
        explained(lab(Pass("wrong", phase, 15, "", function)), lambda x: tf.exp(tf.negative(x)))
    assert caught.value.hint == "passes = {wrong = false} under [session] does without it"
    assert caught.value.__cause__ is not None


def _returns(change):
    def run(graph, context):
        if graph.name == "main":
            with Rewriter(graph) as rewriter:
                rewriter.returns(change(graph.outputs))

    return run


@pytest.mark.parametrize("phase", [p for p in PHASES if p != "translate"])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda outputs: [], "it has 0 outputs in place of 2"),
        (lambda outputs: outputs[:1], "it has 1 outputs in place of 2"),
        (lambda outputs: [*outputs, outputs[0]], "it has 3 outputs in place of 2"),
        (lambda outputs: outputs[::-1], r"output 0 is int32 \[3\] in place of float32 \[3\]"),
    ],
)
def test_a_pass_that_gives_other_outputs_is_named(phase, change, what):
    host = lab(Pass("wrong", phase, 15, "", _returns(change)))
    with tf.Graph(host=host).as_default(), tf.Session(host=host) as session:
        x = tf.placeholder(tf.float32, [3])
        both = [tf.exp(x), tf.cast(tf.exp(x) * 2.0, tf.int32)]
        with pytest.raises(PluginError, match=rf"the pass 'wrong' .* broke the plan: graph main: .*{what}"):
            session.run(both, {x: X})


def _erase_updates(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "AssignAddVariableOp":
                change.erase(node)


@pytest.mark.parametrize("phase", [p for p in PHASES if p != "translate"])
def test_a_pass_that_drops_what_the_step_is_to_run_is_named(phase):
    host = lab(Pass("wrong", phase, 15, "", _erase_updates))
    with tf.Graph(host=host).as_default(), tf.Session(host=host) as session:
        v = tf.Variable(1.0)
        session.run(v.initializer)
        up = v.assign_add(2.0, read_value=False)
        with pytest.raises(
            PluginError, match=r"broke the plan: .*\(AssignAddVariableOp\), which the step is to run, is gone"
        ):
            session.run(up)
        assert session.run(v) == 1.0


def _as_int(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Exp":
                number = make_node(
                    context.const, "n", [], {"value": np.ones(3, np.int32), "dtype": tf.int32}, [(tf.int32, (3,))]
                )
                change.insert(number, before=node)
                change.replace(node, number.outputs)


def _longer(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Exp":
                value = Value("wide", tf.float32, (4,))
                made = context.constant(node, value, np.ones(4, np.float32))
                change.redirect(node.outputs[0], change.insert(made, before=node).outputs[0])


def _without_attributes(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Exp":
                made = make_node(context.opdef("Tanh"), "made", node.inputs, {}, [(tf.float32, (3,))])
                change.replace(node, change.insert(made, before=node).outputs)


def _with_another_type(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op == "Exp":
                made = make_node(context.opdef("Tanh"), "made", node.inputs, {"T": tf.float64}, [(tf.float32, (3,))])
                change.replace(node, change.insert(made, before=node).outputs)


@pytest.mark.parametrize("phase", ["simplify", "rewrite", "placed"])
@pytest.mark.parametrize(
    ("function", "what", "expected", "got"),
    [
        (_as_int, r"graph main, node Exp \(Exp\): %n can't stand for %Exp", "float32 of the shape [3]", "int32 of the shape [3]"),
        (_longer, r"graph main, node Exp \(Exp\): %wide can't", "float32 of the shape [3]", "float32 of the shape [4]"),
        (_without_attributes, r"graph main, node made \(Tanh\): has no attribute T, which Tanh requires", None, None),
        (_with_another_type, r"graph main, node made \(Tanh\): .* which is float64 by its attributes", None, None),
    ],
)  # fmt: skip
def test_a_pass_that_gives_a_node_other_types_is_named_and_not_the_kernel_that_meets_them(
    phase, function, what, expected, got
):
    with pytest.raises(
        PluginError, match=rf"the pass 'wrong' \(of plugin 'lab', .*\) broke the plan: {what}"
    ) as caught:
        explained(lab(Pass("wrong", phase, 15, "", function)), lambda x: tf.negative(tf.exp(x)))
    assert (caught.value.expected, caught.value.got) == (expected, got)


@pytest.mark.parametrize("phase", [p for p in PHASES if p != "translate"])
def test_a_pass_that_returns_something_is_named(phase):
    with pytest.raises(PluginError, match=r"the pass 'wrong' \(of plugin 'lab', .*\) returned <.*return None"):
        explained(lab(Pass("wrong", phase, 15, "", lambda graph, context: graph)), tf.exp)


def test_what_a_simplification_notes_is_explained_once():
    def simpler(graph, context):
        context.notes.append(f"saw {graph.name}")

    found, _ = explained(
        lab(Pass("simpler", "simplify", 15, "", simpler), Pass("more", "rewrite", 1, "", _add_exp)), tf.exp
    )
    assert [n for n in found.notes() if "simpler" in n] == ["pass simpler: saw main"]


def test_a_pass_that_loses_the_order_of_updates_is_named():
    def unordered(graph, context):
        for node in graph.nodes:
            node.order = ()

    host = lab(Pass("wrong", "memory", 1, "", unordered))
    with tf.Graph(host=host).as_default():
        v = tf.Variable(1.0)
        with tf.Session(host=host) as session, pytest.raises(PluginError, match="'wrong'.* nothing orders"):
            session.run([v.initializer, v.assign_add(1.0).op])


def test_errors_that_a_pass_raises_on_purpose_go_through_with_its_name():
    def refuses(graph, context):
        raise InvalidArgumentError("not in this house")

    with pytest.raises(InvalidArgumentError, match="not in this house") as caught:
        explained(lab(Pass("house", "rewrite", 1, "", refuses)), tf.exp)
    assert caught.value.__notes__[0] == "raised by the pass house of plugin lab"


def _adding(graph, context):
    with Rewriter(graph) as change:
        made = make_node(context.opdef("Exp"), "more", graph.inputs, {"T": tf.float32}, [(tf.float32, (3,))])
        change.insert(made)
        change.keep([made])


@pytest.mark.parametrize(
    ("phase", "what"),
    [
        ("chosen", r"added more \(Exp\), and gave it no device or no kernel"),
        ("memory", r"added more \(Exp\), for which there is no kernel any more"),
    ],
)
def test_a_node_that_comes_too_late_is_named(phase, what):
    with pytest.raises(PluginError, match=what):
        explained(lab(Pass("late", phase, 15, "", _adding)), tf.tanh)


def test_what_is_added_after_placement_is_placed():
    def once(graph, context):
        if not any(n.name == "more" for n in graph.nodes):
            _adding(graph, context)

    found, _ = explained(lab(Pass("more", "placed", 15, "", once)), tf.tanh)
    (more,) = [n for n in found.plan.graph.nodes if n.name == "more"]
    assert more.device is not None and found.kernels()["cpu.exp"] == 1


class Stubborn:
    """A pass that puts one node with a kernel that refuses in the place of each Exp; again and again, unless it ``looks``."""

    OP = OpDef("lab.Never", inputs=(ArgDef("x", "float32"),), outputs=(ArgDef("y", "float32"),))

    def __init__(self, looks):
        self.looks, self.runs = looks, 0

    def __call__(self, graph, context):
        self.runs += 1
        with Rewriter(graph) as change:
            for node in graph.nodes:
                if node.op == "Exp" and not (self.looks and node.name in context.failed):
                    types = [(v.dtype, v.shape) for v in node.outputs]
                    made = make_node(self.OP, f"{node.name}/never", node.inputs, {}, types, origins=node.origins)
                    made.device, made.decision = node.device, node.decision
                    change.insert(made, before=node)
                    change.replace(node, made.outputs)
                    kernel = KernelDef(self.OP.name, node.device.type, name="never", prepare=self.prepare)
                    context.give(made, kernel)
                    context.replacements[made] = Replacement(node.name)

    def prepare(self, ctx) -> Prepared:
        raise KernelRefused("not today")


def test_what_a_pass_made_is_taken_back_where_its_kernel_refuses():
    stubborn = Stubborn(looks=True)
    found, got = explained(lab(Pass("stubborn", "chosen", 15, "", stubborn)), tf.exp)
    np.testing.assert_allclose(got, np.exp(X), rtol=1e-6)
    assert [n.op for n in found.plan.graph.nodes] == ["Exp"] and stubborn.runs >= 2


def test_a_pass_that_makes_the_same_again_and_again_is_stopped():
    stubborn = Stubborn(looks=False)
    with pytest.raises(PluginError, match="made Exp/never again, of which all kernels refused: .*not today"):
        explained(lab(Pass("stubborn", "chosen", 15, "", stubborn)), tf.exp)
    assert stubborn.runs == 2


@pytest.mark.parametrize("phase", ["simplify", "rewrite", "chosen"])
def test_a_body_that_is_put_into_itself_is_no_endless_walk(phase):
    def nests(graph, context):
        for node in graph.holders:
            with Rewriter(node.bodies[0]) as change:
                inner = copy_node(node, [node.bodies[0].inputs[0]] * len(node.inputs))
                inner.name = inner.outputs[0].name = "inner"
                change.keep([change.insert(inner)])

    with pytest.raises(PluginError, match=r"the pass 'nests' .* node inner \(Cond\): the body holds itself"):
        explained(
            lab(Pass("nests", phase, 1, "", nests)),
            lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.exp(x), lambda: x),
        )
