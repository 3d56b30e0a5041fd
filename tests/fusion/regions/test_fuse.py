"""Regions from the hook to the result: what a compiler claims is one node, and everything treats it as one."""

from __future__ import annotations

import json
import types
from concurrent.futures import Future

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import (
    Claim,
    KernelDef,
    KernelRefused,
    Prepared,
    Refusal,
    RegionCompiler,
    Rewriter,
    check,
    hookimpl,
    print_graph,
    put_back,
)
from graphdock.contracts.ir_check import check_order
from graphdock.plugin.host import Host
from graphdock.testing.region_reference import ReferenceCompiler
from interpreting_compiler import InterpretingCompiler


class Lab:
    """A host with a compiler, in a plugin that sessions list before cpu; ``run`` builds, runs and explains."""

    def __init__(self, compiler, process_host, kernels=()):
        self.compiler = compiler
        self.host = process_host(Host())
        plugin = types.SimpleNamespace(register_region_compilers=self.hook, __name__="lab")
        plugin.register_kernels = hookimpl(specname="register_kernels")(lambda: kernels)
        self.host.register("lab", plugin)

    @property
    def hook(self):
        return hookimpl(specname="register_region_compilers")(lambda: [self.compiler])

    def session(self, **fields):
        return tf.Session(config=tf.SessionConfig(**{"backends": ["lab", "cpu"], **fields}), host=self.host)


@pytest.fixture
def lab(process_host):
    def make(compiler=None, kernels=()):
        return Lab(InterpretingCompiler() if compiler is None else compiler, process_host, kernels)

    with tf.Graph().as_default():
        yield make


def regions(plan):
    return [n for g in plan.graph.all_graphs() for n in g.nodes if n.op == "Region"]


def gelu(x):
    """Five elementwise nodes in a row, over one value."""
    return (tf.tanh(x * 0.5) + 1.0) * x - x


X = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
WANT = ((np.tanh(X * np.float32(0.5)) + 1) * X - X).astype(np.float32)


def test_connected_nodes_become_one_and_compute_the_same(lab):
    made = lab()
    x = tf.placeholder(tf.float32, [2, 4], name="x")
    y = gelu(x)
    with made.session() as sess:
        explained = sess.explain(y, {x: X})
        (node,) = regions(explained.plan)
        assert node.attrs["ops"] == ("Mul", "Tanh", "Add", "Mul", "Sub")
        assert explained.kernels() == {"lab.interpreter": 1}
        (row,) = explained.rows
        assert row.kernel == "lab.interpreter" and row.why.startswith("Region of 5 nodes: ")
        assert row.flops == 5 * 8
        for scale in (1.0, 3.0):
            want = (np.tanh(X * scale * 0.5) + 1) * X * scale - X * scale
            np.testing.assert_allclose(sess.run(y, {x: X * scale}), want, rtol=1e-5, atol=1e-6)
    assert made.compiler.built >= 1


def test_fusion_off_and_a_plugin_that_is_not_listed_offer_nothing(lab):
    made = lab()
    x = tf.placeholder(tf.float32, [2, 4])
    y = gelu(x)
    for fields in ({"fusion": False}, {"backends": ["cpu"]}):
        with made.session(**fields) as sess:
            assert not regions(sess.explain(y, {x: X}).plan)
            np.testing.assert_allclose(sess.run(y, {x: X}), WANT, rtol=1e-6)
    assert made.compiler.built == 0


def test_refusals_are_shown_with_their_reason(lab):
    class Refusing(InterpretingCompiler):
        def claim(self, candidate):
            return Refusal("too small to be worth it")

    made = lab(Refusing())
    x = tf.placeholder(tf.float32, [2, 4])
    with made.session() as sess:
        explained = sess.explain(gelu(x), {x: X})
        expected = "region  lab.interpreter refused 5 nodes on cpu:0 (Add, Mul 2, Sub, Tanh): too small to be worth it"
        assert expected in str(explained).splitlines()
        (note,) = json.loads(explained.to_json())["regions"]
        assert note["claimed"] == 0 and note["what"] == "too small to be worth it"


def test_nodes_that_are_cheaper_by_themselves_are_left_as_they_are(lab):
    class Dear(InterpretingCompiler):
        def claim(self, candidate):
            nodes = [n for n in candidate.graph.nodes if n.op != "Const"]
            return Claim(tuple(nodes), 1e6 if any(n.op == "Tanh" for n in nodes) else 0.0)

    made = lab(Dear())
    x = tf.placeholder(tf.float32, [2, 4])
    y = tf.reduce_sum(tf.tanh(x) * 2.0) * 3.0 + 4.0 * x - x
    with made.session() as sess:
        explained = sess.explain(y, {x: X})
        assert [set(n.attrs["ops"]) for n in regions(explained.plan)] == [{"Mul", "Add", "Sub"}]
        (line,) = [r for r in str(explained).splitlines() if "does not get" in r]
        assert line.startswith(
            "region  lab.interpreter does not get 2 nodes on cpu:0 (Mul, Tanh): left as they are: as one they would take 1e+06 us"
        )
        np.testing.assert_allclose(sess.run(y, {x: X}), (np.tanh(X) * 2).sum() * 3 + 4 * X - X, rtol=1e-5)


def test_a_compiler_says_how_many_nodes_it_is_offered_at_most(lab):
    class Short(InterpretingCompiler):
        largest = 3

    made = lab(Short())
    x = tf.placeholder(tf.float32, [2, 4])
    with made.session() as sess:
        plan = sess.explain(gelu(tf.negative(x)), {x: X}).plan
        assert max(len(n.attrs["ops"]) for n in regions(plan)) == 3


@pytest.mark.parametrize("largest", [0, 1, "many"])
def test_a_compiler_that_says_wrongly_how_many_it_is_offered_is_named(lab, largest):
    compiler = InterpretingCompiler()
    compiler.largest = largest
    made = lab(compiler)
    x = tf.placeholder(tf.float32, [2, 4])
    with (
        made.session() as sess,
        pytest.raises(tf.errors.PluginError, match="lab.interpreter .* of how many nodes") as caught,
    ):
        sess.run(gelu(x), {x: X})
    assert repr(largest) in str(caught.value)


def test_what_a_claim_leaves_is_offered_again(lab):
    class Pairs(InterpretingCompiler):
        def claim(self, candidate):
            nodes = [n for n in candidate.graph.nodes if n.op != "Const"]
            return Claim(tuple(nodes[:2]), 0.1)

    made = lab(Pairs())
    x = tf.placeholder(tf.float32, [2, 4])
    y = tf.negative(gelu(x))
    with made.session() as sess:
        plan = sess.explain(y, {x: X}).plan
        assert [n.attrs["ops"] for n in regions(plan)] == [("Mul", "Tanh"), ("Add", "Mul"), ("Sub", "Neg")]
        np.testing.assert_allclose(sess.run(y, {x: X}), -WANT, rtol=1e-6)


def test_a_region_in_a_loop_and_in_a_branch(lab):
    made = lab()
    x = tf.placeholder(tf.float32, [2, 4])
    looped = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v * 0.5) + x), [0, x])[1]
    chosen = tf.cond(tf.reduce_sum(x) > 100.0, lambda: gelu(looped), lambda: tf.tanh(-looped))
    with made.session() as sess:
        assert len(regions(sess.explain(chosen, {x: X}).plan)) == 3
        v = X
        for _ in range(3):
            v = np.tanh(v * 0.5) + X
        np.testing.assert_allclose(sess.run(chosen, {x: X}), np.tanh(-v), rtol=1e-5)


def test_control_and_order_lead_over_a_region(lab):
    """The nodes wait for an update, and another update waits for them."""
    made = lab()
    x = tf.placeholder(tf.float32, [2, 4])
    v = tf.Variable(np.zeros((2, 4), np.float32))
    with tf.control_dependencies([v.assign_add(x)]):
        a = tf.negative(tf.tanh(x))
        read = tf.identity(v.read_value())
    with tf.control_dependencies([a]):
        later = v.assign_add(x, read_value=False)
    both = a * read + read
    with made.session() as sess:
        sess.run(v.initializer)
        plan = sess.explain([both, later], {x: X}).plan
        assert regions(plan)
        check(plan.graph)
        check_order(plan.graph, "the regions")
        for turn in (1, 3):
            got, _ = sess.run([both, later], {x: X})
            np.testing.assert_allclose(got, -np.tanh(X) * X * turn + X * turn, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(sess.run(v), 4 * X, rtol=1e-6)


@pytest.mark.parametrize("fields", [{}, {"debug": True}])
def test_storage_treats_a_region_as_a_node(lab, fields):
    """A region that takes over its input's buffer, a fetched value inside of one, and a result that is fed back."""

    class Inplace(InterpretingCompiler):
        def inplace(self, region):
            # each element is read for the last time when it is written: the region is a chain over one input
            chain = len(region.graph.inputs) == len(region.graph.outputs) == 1
            return {"out0": ("in0",)} if chain else {}

    x = tf.placeholder(tf.float32, [2, 4])
    inner = tf.tanh(tf.matmul(x, tf.ones([4, 4])))
    y = tf.matmul(tf.negative(tf.negative(tf.negative(inner))), tf.ones([4, 4]))
    made = lab(Inplace())
    with made.session(**fields) as sess:
        want = np.tanh(X @ np.ones((4, 4), np.float32))
        for _ in range(3):
            got, kept = sess.run([y, inner], {x: X})
            np.testing.assert_allclose(kept, want, rtol=1e-5)
            np.testing.assert_allclose(got, -want @ np.ones((4, 4)), rtol=1e-5)
        np.testing.assert_allclose(sess.run(y, {x: X}), -want @ np.ones((4, 4)), rtol=1e-5)


def test_two_compilers_of_one_name_and_a_wrong_item_are_refused(lab):
    made = lab()
    hook = hookimpl(specname="register_region_compilers")(lambda: [InterpretingCompiler(), InterpretingCompiler()])
    twice = types.SimpleNamespace(register_region_compilers=hook, __name__="twice")
    with pytest.raises(tf.errors.PluginError, match="brings the region compiler 'twice.interpreter'"):
        made.host.register("twice", twice)
    assert made.host.region_compilers.names() == ["lab.interpreter"]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sampled(2)
def test_random_graphs_compute_the_same_with_and_without_regions(lab, seed):
    made = lab()
    rng = np.random.default_rng(seed)
    x = [tf.placeholder(tf.float32, [3, 3]) for _ in range(2)]
    tensors = list(x)
    for _ in range(30):
        a, b = (tensors[int(i)] for i in rng.integers(max(0, len(tensors) - 8), len(tensors), 2))
        kind = int(rng.integers(6))
        makes = [tf.add, lambda a, b: tf.tanh(a), tf.multiply, tf.maximum, tf.matmul]
        tensors.append(makes[kind](a, b) if kind < 5 else -tf.reduce_sum(a, 0, keepdims=True) + b)
    fetches = [tensors[int(i)] for i in rng.integers(2, len(tensors), 5)]
    feeds = {t: (rng.standard_normal((3, 3)) / 3).astype(np.float32) for t in x}
    results = []
    for fields in ({"fusion": False}, {}, {"debug": True}):
        with made.session(**fields) as sess:
            if fields == {}:
                assert regions(sess.explain(fetches, feeds).plan)
            results.append(sess.run(fetches, feeds))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_a_region_can_be_put_back(lab):
    """Its own nodes stand where the one stood, with their devices, kernels and edges."""
    from graphdock_fusion.regions import fuse as module

    made, kept = lab(), []
    put = module._put
    x = tf.placeholder(tf.float32, [2, 4])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "_put", lambda change, node, region: kept.append((node, region)) or put(change, node, region)
        )
        with made.session() as sess:
            plan = sess.explain(gelu(x), {x: X}).plan
    ((node, region),) = kept
    with Rewriter(plan.graph) as change:
        put_back(change, node, region)
    check(plan.graph)
    assert [n.op for n in plan.graph.nodes if n.op != "Const"] == ["Mul", "Tanh", "Add", "Mul", "Sub"]
    assert all(
        n.device is not None and n.decision.kernel.startswith("cpu.") for n in plan.graph.nodes if n.op != "Const"
    )
    assert "Region" not in print_graph(plan.graph)


class Preparing(InterpretingCompiler):
    """Prepares what it builds; ``refuses`` says of a region's ops why it will not, ``fails`` how the compilation ends."""

    def __init__(self, name="interpreter", refuses=lambda ops: None, fails=lambda ops: None):
        super().__init__()
        self.name, self.refuses, self.fails, self.prepared = name, refuses, fails, []

    build = RegionCompiler.build

    def prepare(self, region, ctx):
        ops = [n.op for n in region.graph.nodes if n.op != "Const"]
        self.prepared.append(ops)
        reason = self.refuses(ops)
        if reason:
            raise KernelRefused(reason)
        made = InterpretingCompiler.build(self, region, ctx)
        ready = Future()
        failure = self.fails(ops)
        if failure is None:
            ready.set_result(None)
        else:
            ready.set_exception(failure)
        return Prepared(lambda told: made.compute, scratch=made.scratch, ready=ready)


def test_a_region_may_be_prepared(lab):
    made = lab(Preparing())
    x = tf.placeholder(tf.float32, [2, 4])
    with made.session() as sess:
        y = gelu(x)
        np.testing.assert_array_equal(sess.run(y, {x: X}), WANT)
        assert [n.op for n in regions(sess.explain(y, {x: X}).plan)] == ["Region"]
    assert made.compiler.prepared[0] == ["Mul", "Tanh", "Add", "Mul", "Sub"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"refuses": lambda ops: "registers run out"}, "refused when it was prepared: registers run out"),
        (
            {"fails": lambda ops: RuntimeError("ptxas says no")},
            "refused when it was prepared: RuntimeError: ptxas says no",
        ),
    ],
)
def test_a_region_that_comes_to_nothing_is_put_back_and_its_nodes_run(lab, how, words):
    made = lab(Preparing(**how))
    x = tf.placeholder(tf.float32, [2, 4])
    with made.session() as sess:
        y = gelu(x)
        np.testing.assert_array_equal(sess.run(y, {x: X}), WANT)
        about = sess.explain(y, {x: X})
        assert not regions(about.plan) and set(about.kernels()) == {"cpu.mul", "cpu.tanh", "cpu.add", "cpu.sub"}
        assert words in str(about)
    assert len(made.compiler.prepared) == 2, "once per plan: one that ran, one that was explained"


def test_the_next_compiler_gets_what_came_to_nothing(lab, process_host):
    first, second = Preparing("first", refuses=lambda ops: "no"), Preparing("second")
    host = process_host(Host())
    hook = hookimpl(specname="register_region_compilers")(lambda: [first, second])
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 4])
        y = gelu(x)
        with tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"]), host=host) as sess:
            np.testing.assert_array_equal(sess.run(y, {x: X}), WANT)
            (node,) = regions(sess.explain(y, {x: X}).plan)
            assert node.decision.kernel == "lab.second"


def test_one_region_of_several_comes_to_nothing_and_the_others_stay(lab):
    made = lab(Preparing(refuses=lambda ops: "no tanh here" if "Tanh" in ops else None))
    x = tf.placeholder(tf.float32, [2, 4])
    with made.session() as sess:
        y, z = tf.sin(gelu(x)), tf.sin(x * 2.0 - 1.0)
        got = sess.run([y, z], {x: X})
        np.testing.assert_array_equal(got[0], np.sin(WANT))
        np.testing.assert_array_equal(got[1], np.sin(X * np.float32(2) - 1))
        (node,) = regions(sess.explain([y, z], {x: X}).plan)
        assert node.attrs["ops"] == ("Mul", "Sub")


def test_a_compiler_with_neither_or_both_is_refused_when_it_is_registered(lab):
    neither = type("Neither", (RegionCompiler,), {"device_type": "cpu", "claim": lambda self, c: Refusal("no")})()
    both = type("Both", (InterpretingCompiler,), {"prepare": Preparing.prepare})()
    made = lab()
    for number, wrong in enumerate((neither, both)):
        hook = hookimpl(specname="register_region_compilers")(lambda wrong=wrong: [wrong])
        plugin = types.SimpleNamespace(register_region_compilers=hook, __name__=f"wrong{number}")
        with pytest.raises(tf.errors.PluginError, match=r"(?s)declared in the wrong way.*build or prepare"):
            made.host.register(f"wrong{number}", plugin)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"device_type": None}, "expected device_type, a device type in lower case, got None"),
        ({"device_type": "CPU"}, "expected device_type, a device type in lower case, got 'CPU'"),
        ({"name": "build and prepare"}, "expected name, of letters, digits, hyphens and underscores, got 'build and"),
        ({"name": ""}, "expected name, of letters, digits, hyphens and underscores, got ''"),
    ],
)
def test_a_compiler_without_a_device_type_or_a_name_is_refused_when_it_is_registered(lab, fields, words):
    with pytest.raises(tf.errors.PluginError, match="declared in the wrong way") as caught:
        lab(type("Wrong", (InterpretingCompiler,), fields)())
    assert words in str(caught.value).replace(":", "").replace("\n  ", ", ")


def test_what_is_put_back_stands_after_the_constants_that_it_reads(lab):
    class Parts(Preparing):
        def claim(self, candidate):
            found = {n.op: n for n in candidate.graph.nodes}
            return Claim((found["Mul"], found["Maximum"]), 0.1) if {"Mul", "Tanh"} <= set(found) else Refusal("no")

    made = lab(Parts(refuses=lambda ops: "not today"))
    x = tf.placeholder(tf.float32, [2, 4])
    y = tf.tanh(x * 2.0 + 1.0) - tf.maximum(x, 0.0)
    with made.session(debug=True) as sess:
        np.testing.assert_allclose(sess.run(y, {x: X}), np.tanh(X * 2 + 1) - np.maximum(X, 0), rtol=1e-6)
        check_order(sess.explain(y, {x: X}).plan.graph, "here")


class Picky(ReferenceCompiler):
    """The reference, which takes no candidate with an Exp."""

    single = True

    def claim(self, candidate):
        if any(n.op == "Exp" for n in candidate.graph.nodes):
            return Refusal("an Exp")
        return super().claim(candidate)


@pytest.mark.parametrize("single", [True, False])
def test_an_elementwise_node_between_kernels_of_the_plugin_is_offered_alone(lab, single):
    compiler = type("Compiler", (Picky,), {"single": single})()
    made = lab(compiler, [KernelDef("Exp", "cpu", lambda ctx: np.exp)])
    x = tf.placeholder(tf.float32, [2, 4])
    between = tf.exp(tf.tanh(tf.exp(x)))
    last = tf.tanh(tf.exp(x * 0.5))  # nothing of the plugin's reads it
    first = tf.exp(tf.tanh(x))  # and it reads nothing of the plugin's
    with made.session() as sess:
        explained = sess.explain([between, last, first], {x: X})
        kernels = explained.kernels()
        got = sess.run([between, last, first], {x: X})
    assert kernels.get("lab.reference", 0) == single and kernels["cpu.tanh"] == 3 - single
    np.testing.assert_allclose(got, [np.exp(np.tanh(np.exp(X))), np.tanh(np.exp(X * 0.5)), np.exp(np.tanh(X))], 1e-6)
    if single:
        assert regions(explained.plan)[0].attrs["ops"] == ("Tanh",)
        assert "Region of 1 node: " in str(explained)
