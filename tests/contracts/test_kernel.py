"""KernelDefs: their names, and when, how often, under which lock and on which thread their functions are called."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import (
    UNDECIDED,
    ArgInfo,
    BindContext,
    Bound,
    BuildContext,
    In,
    KernelDef,
    Lit,
    OpDef,
    Out,
    Prepared,
    Scratch,
    build_kernel,
    dtypes,
    hookimpl,
)
from graphdock.contracts.opdef import ArgDef
from graphdock.contracts.rewriter import Builder
from graphdock.errors import (
    ConfigError,
    InternalError,
    InvalidArgumentError,
    KernelNotFoundError,
    KernelRefused,
)
from graphdock.plugin.host import Host
from interpreting_compiler import InterpretingCompiler


def test_short_names_of_kernels_are_snake_case():
    names = {op: KernelDef(op, "cpu", lambda ctx: print).short_name for op in ("MatMul", "LRN", "so3.TensorProduct")}
    assert names == {"MatMul": "mat_mul", "LRN": "lrn", "so3.TensorProduct": "tensor_product"}


def test_a_name_that_is_given_is_kept():
    assert KernelDef("MatMul", "cpu", lambda ctx: print, name="fast").short_name == "fast"


@pytest.mark.parametrize("ways", [{}, {"build": print, "prepare": print}])
def test_a_kernel_is_declared_in_one_way(ways):
    with pytest.raises(InvalidArgumentError, match="kernel for MatMul on cpu") as caught:
        KernelDef("MatMul", "cpu", **ways)
    assert caught.value.expected == "build or prepare"


# -- a host with an op of its own, and kernels that count


class Lab:
    """A host with the op ``lab.Twice``, whose kernels the tests bring."""

    def __init__(self) -> None:
        self.host = Host()
        args = ArgDef("x", "float32", "[*S]"), ArgDef("y", "float32", "[*S]")
        self.opdef = OpDef("lab.Twice", inputs=args[:1], outputs=args[1:], package="lab")
        self.host.ops.add(self.opdef, "lab")
        self.calls: list[str] = []

    def kernel(self, plugin="lab", **fields) -> None:
        self.host.kernels.add(KernelDef("lab.Twice", "cpu", **fields), plugin, "lab")

    def plugin(self, name, **fields) -> None:
        kernel = KernelDef("lab.Twice", "cpu", **fields)
        self.host.register(name, SimpleNamespace(__name__=name, register_kernels=hookimpl(lambda: [kernel])))

    def twice(self, x):
        graph = tf.get_default_graph()
        return graph.create_op("lab.Twice", [tf.convert_to_tensor(x)], op_def=self.opdef).outputs[0]

    def session(self, **fields):
        return tf.Session(host=self.host, config=tf.SessionConfig(**fields))

    def prepare(self, ctx):
        """A kernel that does as it should, and says what is asked of it."""
        self.calls.append("prepare")

        def bind(told):
            self.calls.append("bind")
            return fresh if told.fresh else planned

        return Prepared(bind)


def planned(x, y):
    np.multiply(x, 2, y)


def fresh(x):
    return x * 2


@pytest.fixture
def lab():
    return Lab()


def two_at_once(sess, fetch, feeds, inside, go):
    """Run a step on two threads, so that both are inside at the same time; the results."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(sess.run(fetch, feeds))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert inside.acquire(timeout=60)
    go.set()
    for thread in threads:
        thread.join(60)
    return results


# -- build


def test_build_is_called_once_per_instance_first_while_planning_and_then_on_a_steps_thread(lab):
    inside, go = threading.Semaphore(0), threading.Event()
    seen = []

    def build(ctx):
        planner = sess._planner._lock._is_owned()
        seen.append((planner, threading.current_thread() is threading.main_thread()))

        def compute(x, y):
            inside.release()
            go.wait(60)
            planned(x, y)

        return Bound(compute)

    lab.kernel(build=build)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(x) + 0.0
    sess = lab.session()
    go.set()
    sess.run(y, {x: [1.0, 2.0]})
    sess.run(y, {x: [1.0, 2.0]})
    assert seen == [(True, True)], "the instance that was made while planning serves both steps"
    go.clear()
    while inside.acquire(blocking=False):
        pass
    results = two_at_once(sess, y, {x: [1.0, 2.0]}, inside, go)
    assert seen == [(True, True), (False, False)]
    assert [r.tolist() for r in results] == [[2.0, 4.0]] * 2


def test_the_first_result_of_build_answers_for_the_plan(lab):
    """Facts that a later call states otherwise change nothing."""
    made = []

    def build(ctx):
        made.append(ctx)
        scratch = (Scratch(dtypes.float32, (2,)),) if len(made) == 1 else ()

        def compute(x, y, *rest):
            assert len(rest) == 1
            planned(x, y)

        return Bound(compute, scratch=scratch)

    lab.kernel(build=build)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(x) + 0.0
    with lab.session() as sess:
        metadata = tf.RunMetadata()
        sess.run(y, {x: [1.0, 2.0]}, run_metadata=metadata)
        taken = metadata.plan.lease()
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]
        assert len(made) == 2 and taken is not None


def test_compute_runs_on_the_steps_thread_and_never_twice_at_once_for_one_bound(lab):
    inside, go = threading.Semaphore(0), threading.Event()
    running, threads = [], []

    def build(ctx):
        me = object()

        def compute(x, y):
            assert me not in running
            running.append(me)
            threads.append(threading.current_thread())
            inside.release()
            go.wait(60)
            planned(x, y)
            running.remove(me)

        return Bound(compute)

    lab.kernel(build=build)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(x) + 0.0
    with lab.session() as sess:
        results = two_at_once(sess, y, {x: [1.0, 2.0]}, inside, go)
    assert len(results) == 2 and len(set(threads)) == 2


# -- prepare and bind


def test_prepare_is_called_once_per_node_of_a_plan_and_bind_once_per_instance(lab):
    lab.kernel(prepare=lab.prepare)
    x = tf.placeholder(tf.float32, [None])
    y = lab.twice(lab.twice(x))
    with lab.session() as sess:
        metadata = tf.RunMetadata()
        for _ in range(3):
            assert sess.run(y, {x: [1.0, 2.0]}, run_metadata=metadata).tolist() == [4.0, 8.0]
        assert lab.calls == ["prepare"] * 2 + ["bind"] * 2
        taken = metadata.plan.lease()
        sess.run(y, {x: [1.0, 2.0]})
        assert lab.calls == ["prepare"] * 2 + ["bind"] * 4 and taken is not None
        lab.calls.clear()
        sess.run(y, {x: [1.0, 2.0, 3.0]})
        assert lab.calls == ["prepare"] * 2 + ["bind"] * 2, "another plan"


def test_prepare_runs_under_the_planners_lock_and_takes_part_in_explaining(lab):
    owned = []

    def prepare(ctx):
        owned.append(sess._planner._lock._is_owned())
        return lab.prepare(ctx)

    lab.kernel(prepare=prepare)
    x = tf.placeholder(tf.float32, [2])
    sess = lab.session()
    assert sess.explain(lab.twice(x), {x: [1.0, 2.0]}).kernels() == {"lab.twice": 1}
    assert owned == [True] and lab.calls == ["prepare"], "nothing is bound to explain a plan"


def test_prepare_is_told_what_is_known_before_storage_is(lab):
    told = []

    def prepare(ctx):
        told.append(ctx)
        return lab.prepare(ctx)

    lab.kernel(prepare=prepare, layout="strided")
    x = tf.placeholder(tf.float32, [2, 3])
    y = lab.twice(tf.transpose(x))
    with lab.session() as sess:
        np.testing.assert_array_equal(sess.run(y, {x: np.ones((2, 3))}), np.full((3, 2), 2.0))
    (ctx,) = told
    assert (ctx.inputs[0].shape, ctx.inputs[0].contiguous, ctx.inputs[0].value) == ((3, 2), False, None)
    assert ctx.outputs[0].mode is UNDECIDED and ctx.outputs[0].shape == (3, 2)


@pytest.fixture
def halves(lab):
    """The op ``lab.Halves``, ``x / 2`` and ``x / 4``, whose kernel spoils what nobody reads; and what its ``prepare`` is told."""
    args = tuple([ArgDef(name, "float32", "[*S]") for name in ("x", "half", "quarter")])
    opdef = OpDef("lab.Halves", inputs=args[:1], outputs=args[1:], package="lab", traits=frozenset({"pure"}))
    lab.host.ops.add(opdef, "lab")
    told = []

    def prepare(ctx):
        used = tuple(o.used for o in ctx.outputs)
        told.append(used)

        def compute(x, *outs):
            for out, divisor, wanted in zip(outs, (2, 4), used, strict=True):
                np.divide(x, divisor, out) if wanted else out.fill(np.nan)

        return Prepared(lambda bound: compute, modes=("planned",))

    lab.host.kernels.add(KernelDef("lab.Halves", "cpu", prepare=prepare), "lab", "lab")
    return lambda x: tf.get_default_graph().create_op("lab.Halves", [x], op_def=opdef).outputs, told


def test_prepare_is_told_which_outputs_are_read(lab, halves):
    make, told = halves
    x = tf.placeholder(tf.float32, [2])
    half, quarter = make(x)
    inside = tf.cond(tf.reduce_sum(x) > 0.0, lambda: quarter + 1.0, lambda: x)  # read in a body alone
    with lab.session() as sess:
        for fetched, used, value in (
            (half, (True, False), 4.0),
            (tf.exp(quarter), (False, True), np.exp(2.0)),
            (inside, (False, True), 3.0),
            (half + quarter, (True, True), 6.0),
        ):
            told.clear()
            np.testing.assert_allclose(sess.run(fetched, {x: [8.0, 8.0]}), [value, value], rtol=1e-6)
            assert told == [used]


def test_a_kernel_is_prepared_anew_where_another_ones_refusal_makes_more_of_its_outputs_read(lab, halves, monkeypatch):
    """What stands for the refused node is merged with the first one, whose second output is read from then on."""
    make, told = halves
    monkeypatch.setitem(sys.modules, "lab_halves", SimpleNamespace(second=lambda x: [make(x)[1]]))
    args = ArgDef("x", "float32", "[*S]"), ArgDef("y", "float32", "[*S]")
    opdef = OpDef("lab.Second", inputs=args[:1], outputs=args[1:], package="lab", decomposition="lab_halves:second")
    lab.host.ops.add(opdef, "lab")

    def refuses(ctx):
        raise KernelRefused("not today")

    lab.host.kernels.add(KernelDef("lab.Second", "cpu", prepare=refuses), "lab", "lab")
    x = tf.placeholder(tf.float32, [2])
    product = make(x)[0] * tf.get_default_graph().create_op("lab.Second", [x], op_def=opdef).outputs[0]
    with lab.session() as sess:
        assert sess.run(product, {x: [8.0, 4.0]}).tolist() == [8.0, 2.0]
    assert told == [(True, False), (True, True)]


def test_bind_is_told_each_buffer_that_stays(lab):
    """What compute is called with in every step is what bind was told, where it was told anything."""
    told = []

    def prepare(ctx):
        scratch = (Scratch(dtypes.float32, (3,)),)

        def bind(bound):
            calls = []
            told.append((bound, calls))

            def compute(*buffers):
                calls.append(buffers)
                planned(buffers[0], buffers[1])

            return compute

        return Prepared(bind, scratch=scratch)

    lab.kernel(prepare=prepare)
    x = tf.placeholder(tf.float32, [3])
    w = tf.Variable([1.0, 2.0, 3.0])
    first = lab.twice(x)  # its input is fed: another array in each step
    second = lab.twice(first) + 0.0  # planned
    third = lab.twice(w.read_value()) + second
    with lab.session() as sess:
        sess.run(w.initializer)
        for k in (1.0, 2.0):
            got = sess.run(third, {x: np.full(3, k, np.float32)})
            assert got.tolist() == [4 * k + 2, 4 * k + 4, 4 * k + 6]
    assert len(told) == 3
    fixed = {tuple(b is not None for b in bound.buffers) for bound, _ in told}
    assert fixed == {(False, True, True), (True, True, True)}
    for bound, calls in told:
        assert isinstance(bound, BindContext) and len(calls) == 2
        for buffers in calls:
            assert all(known is None or known is given for known, given in zip(bound.buffers, buffers, strict=True))


def test_what_prepare_states_is_planned_for(lab):
    """Arguments in an order of its own, a literal, scratch, and an input that it keeps."""
    kept, literal = [], object()

    def prepare(ctx):
        def bind(bound):
            def compute(scratch, y, mark, x):
                assert mark is literal and scratch.shape == (5,)
                kept.append(x)
                planned(x, y)

            return compute

        args = (Out(1), Out(0), Lit(literal), In(0))
        return Prepared(bind, args, (Scratch(dtypes.float32, (5,)),), retains=(0,), modes=("planned",))

    lab.kernel(prepare=prepare)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(tf.tanh(x)) + 0.0
    with lab.session() as sess:
        metadata = tf.RunMetadata()
        sess.run(y, {x: [1.0, 2.0]}, run_metadata=metadata)
        sess.run(y, {x: [3.0, 4.0]})
        sources = {name for name in metadata.plan.source.split() if name.startswith("k1(")}
    assert len(sources) == 1
    np.testing.assert_allclose(kept[0], np.tanh([1.0, 2.0]), rtol=1e-6)


def test_modes_that_prepare_does_not_accept_are_not_granted(lab):
    modes = []

    def prepare(ctx):
        def bind(bound):
            modes.append(bound.outputs[0].mode.kind)
            return fresh

        return Prepared(bind, modes=("fresh",))

    lab.kernel(prepare=prepare)
    x = tf.placeholder(tf.float32, [2])
    with lab.session() as sess:
        assert sess.run(lab.twice(x) + 0.0, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]
    assert modes == ["fresh"]


def test_prepare_that_raises_names_the_node(lab):
    def prepare(ctx):
        raise KeyError("boom")

    lab.kernel(prepare=prepare)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(x)
    with (
        lab.session() as sess,
        pytest.raises(InternalError, match="kernel lab.twice of lab.Twice could not be prepared") as c,
    ):
        sess.run(y, {x: [1.0, 2.0]})
    assert c.value.op_name == y.op.name and "test_kernel.py" in c.value.site


def test_bind_that_raises_names_the_node_and_leaves_the_plan_fit(lab):
    broken = [True]

    def prepare(ctx):
        def bind(bound):
            if broken.pop():
                broken.append(False)
                raise KeyError("boom")
            return fresh if bound.fresh else planned

        return Prepared(bind)

    lab.kernel(prepare=prepare)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(x)
    with lab.session() as sess:
        with pytest.raises(InternalError, match="could not be bound") as caught:
            sess.run(y, {x: [1.0, 2.0]})
        assert caught.value.op_name == y.op.name
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]


# -- compilation and refusal


def test_compilations_are_awaited_together_before_memory_is_planned(lab):
    """Each future is ready only once all have been started: awaited one by one they would never be."""
    futures: list[Future[None]] = []

    def prepare(ctx):
        futures.append(Future())
        if len(futures) == 3:
            for future in futures:
                future.set_result(None)
        prepared = lab.prepare(ctx)
        return Prepared(prepared.bind, ready=futures[-1])

    lab.kernel(prepare=prepare)
    x = tf.placeholder(tf.float32, [2])
    with lab.session() as sess:
        assert sess.run(lab.twice(lab.twice(lab.twice(x))), {x: [1.0, 2.0]}).tolist() == [8.0, 16.0]
    assert len(futures) == 3


def failing(error):
    future: Future[None] = Future()
    future.set_exception(error)
    return future


def cancelled():
    future: Future[None] = Future()
    future.cancel()
    future.set_running_or_notify_cancel()
    return future


def refusing(ctx):
    raise KernelRefused("no tile fits 3 columns")


REFUSALS = {
    "refuses": (refusing, "no tile fits 3 columns"),
    "fails": (lambda ctx: Prepared(print, ready=failing(ValueError("ptxas: 255 registers"))), "ValueError: ptxas: 255 registers"),
    "refuses late": (lambda ctx: Prepared(print, ready=failing(KernelRefused("too much shared memory"))), "too much shared memory"),
    "is cancelled": (lambda ctx: Prepared(print, ready=cancelled()), "CancelledError"),
}  # fmt: skip


@pytest.mark.parametrize("how", REFUSALS)
def test_a_refusal_chooses_another_kernel_and_records_the_reason(lab, how):
    prepare, reason = REFUSALS[how]
    lab.plugin("proud", prepare=prepare)
    lab.plugin("modest", build=lambda ctx: fresh if ctx.fresh else planned)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(x)
    with lab.session(backends=("proud", "modest", "cpu")) as sess:
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]
        (row,) = [r for r in sess.explain(y, {x: [1.0, 2.0]}).rows if r.op == "lab.Twice"]
    assert row.kernel == "modest.twice"
    assert row.lost == (("proud.twice", f"refused when it was prepared: {reason}".rstrip()),) or (
        how == "is cancelled" and "CancelledError" in row.lost[0][1]
    )


def test_when_all_refuse_the_error_lists_the_reasons(lab):
    lab.plugin("proud", prepare=refusing)
    lab.plugin("vain", prepare=REFUSALS["fails"][0])
    x = tf.placeholder(tf.float32, [2])
    with (
        lab.session(backends=("proud", "vain", "cpu")) as sess,
        pytest.raises(KernelNotFoundError, match="no tile fits 3 columns(?s:.*)255 registers"),
    ):
        sess.run(lab.twice(x), {x: [1.0, 2.0]})


def test_a_pinned_kernel_that_refuses_is_an_error(lab):
    lab.plugin("proud", prepare=refusing)
    lab.plugin("modest", build=lambda ctx: fresh)
    x = tf.placeholder(tf.float32, [2])
    fields = {"backends": ("proud", "modest", "cpu"), "kernels": {"lab.Twice@cpu": "proud.twice"}}
    with (
        lab.session(**fields) as sess,
        pytest.raises(ConfigError, match="pin .* does not fit .*no tile fits 3 columns"),
    ):
        sess.run(lab.twice(x), {x: [1.0, 2.0]})


def test_a_node_that_is_chosen_again_leaves_the_others_prepared_once(lab):
    def prepare(ctx):
        lab.calls.append(ctx.node.name)
        if "refused" in ctx.node.name:
            raise KernelRefused("not me")
        return Prepared(lambda bound: fresh if bound.fresh else planned)

    lab.plugin("proud", prepare=prepare)
    lab.plugin("modest", build=lambda ctx: fresh if ctx.fresh else planned)
    x = tf.placeholder(tf.float32, [2])
    y = lab.twice(x)
    with tf.name_scope("refused"):
        z = lab.twice(y)
    with lab.session(backends=("proud", "modest", "cpu")) as sess:
        assert sess.run(lab.twice(z), {x: [1.0, 2.0]}).tolist() == [8.0, 16.0]
    assert len(lab.calls) == len(set(lab.calls)) == 3


# -- without a plan


def context(value):
    opdef = OpDef("Twice", inputs=(ArgDef("x", "float32"),), outputs=(ArgDef("y", "float32"),))
    builder = Builder("g")
    x = builder.input("x", dtypes.float32, (2,))
    builder.node(opdef, "y", [x], {}, [(dtypes.float32, (2,))])
    node = builder.graph.nodes[0]
    info = ArgInfo("x", dtypes.float32, (2,), "host", value)
    return BuildContext(node, (info,), (), None)  # type: ignore[arg-type]


def test_a_kernel_can_be_made_without_a_plan_whichever_way_it_is_declared():
    one = build_kernel(KernelDef("Twice", "cpu", lambda ctx: fresh), context(None))
    done: Future[int] = Future()
    done.set_result(1)
    two = KernelDef("Twice", "cpu", prepare=lambda ctx: Prepared(lambda bound: fresh, scratch=(), ready=done))
    for bound in (one, build_kernel(two, context(None))):
        assert isinstance(bound, Bound) and bound.compute is fresh
    with pytest.raises(InternalError, match="not bound"):
        Prepared(lambda bound: fresh).facts().compute()


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_refusal_beside_a_region_chooses_again_with_the_regions_nodes_put_back(lab, in_a_loop):
    compiler = InterpretingCompiler()
    lab.plugin("proud", prepare=refusing)
    brought = {
        "register_kernels": lambda: [KernelDef("lab.Twice", "cpu", lambda ctx: fresh if ctx.fresh else planned)],
        "register_region_compilers": lambda: [compiler],
    }
    hooks = {name: hookimpl(specname=name)(hook) for name, hook in brought.items()}
    lab.host.register("modest", SimpleNamespace(__name__="modest", **hooks))
    x = tf.placeholder(tf.float32, [2])

    def level(a):
        return lab.twice(tf.tanh(a * 0.5) + 1.0) - 1.0

    y = tf.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, level(a)), [0, x])[1] if in_a_loop else level(x)
    with lab.session(backends=("proud", "modest", "cpu"), debug=True) as sess:
        got = sess.run(y, {x: [1.0, 2.0]})
        rows = {r.op: r for r in sess.explain(y, {x: [1.0, 2.0]}).rows}
    np.testing.assert_allclose(got, 2 * (np.tanh([0.5, 1.0]) + 1) - 1, rtol=1e-6)
    assert rows["lab.Twice"].kernel == "modest.twice" and "Region" in rows
