"""A resource kind from a package: handles, loops, branches, containers, resets, locks, and what is refused."""

from __future__ import annotations

import sys
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, AttrDef, Bound, KernelDef, OpDef, ResourceKind, hookimpl
from graphdock.plugin.host import Host


@pytest.fixture(params=[("cpu",), ("toy", "cpu")], ids=["on cpu", "on its own device"])
def backends(request):
    return request.param


@pytest.fixture
def toy_ops(toy, process_host):
    """The toy's wrappers, over a fresh default host; launches are counted from zero."""
    process_host(Host())
    from graphdock_toy._gen import toy_ops
    from graphdock_toy.device import LAUNCHES

    LAUNCHES.clear()
    return toy_ops


@pytest.fixture
def session(toy_ops, backends):
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=backends)) as session:
        yield session


def launches():
    from graphdock_toy.device import LAUNCHES

    return LAUNCHES


def i64(value):
    return tf.constant(value, tf.int64)


def test_a_resource_keeps_its_content_between_steps(session, toy_ops):
    table = toy_ops.counters(start=10)
    more = toy_ops.count(table, i64(1), i64(5))
    assert [session.run(more) for _ in range(3)] == [15, 20, 25]
    assert session.run([toy_ops.counted(table, i64(1)), toy_ops.counted(table, i64(2))]) == [25, 10]
    assert launches()["counters made"] == 1


def test_nothing_is_made_to_explain_and_one_is_made_for_all_steps(session, toy_ops):
    table = toy_ops.counters()
    fetches = [toy_ops.count(table, i64(0), i64(1)), toy_ops.counted(table, i64(3))]
    shown = str(session.explain(fetches))
    assert "toy.Count" in shown and launches()["counters made"] == 0
    for fetch in fetches:
        session.run(fetch)
    assert launches()["counters made"] == 1


def test_in_a_loop_each_iteration_sees_what_the_one_before_it_wrote(session, toy_ops):
    table = toy_ops.counters()

    def body(i, total):
        now = toy_ops.count(table, i % 2, i + 1)
        return i + 1, total + now

    _, total = tf.while_loop(lambda i, total: i < 5, body, [i64(0), i64(0)])
    values = {0: 0, 1: 0}
    for _ in range(2):
        expected = 0
        for i in range(5):
            values[i % 2] += i + 1
            expected += values[i % 2]
        assert session.run(total) == expected
    assert session.run([toy_ops.counted(table, i64(k)) for k in (0, 1)]) == [values[0], values[1]]


def test_in_a_branch_only_the_one_that_runs_counts(session, toy_ops):
    table = toy_ops.counters()
    which = tf.placeholder(tf.bool, [])
    result = tf.cond(
        which, lambda: toy_ops.count(table, i64(1), i64(1)), lambda: toy_ops.count(table, i64(2), i64(100))
    )
    assert [session.run(result, {which: w}) for w in (True, False, True)] == [1, 100, 2]


def test_a_branch_inside_a_loop_counts_for_its_effect_alone(session, toy_ops):
    table = toy_ops.counters()

    def body(i):
        odd = tf.cond(
            tf.equal(i % 2, 1), lambda: toy_ops.count(table, i64(1), i64(1)), lambda: toy_ops.counted(table, i64(1))
        )
        with tf.control_dependencies([odd]):
            return tf.identity(i + 1)

    (end,) = [tf.while_loop(lambda i: i < 7, body, [i64(0)])]
    assert session.run(end) == 7
    assert session.run(toy_ops.counted(table, i64(1))) == 3


def test_two_sessions_share_a_table_in_a_named_container(toy_ops, backends):
    def build():
        with tf.Graph().as_default() as graph, tf.container("counted together"):
            table = toy_ops.counters(shared_name="the table")
            return graph, toy_ops.count(table, i64(0), i64(1)), toy_ops.counted(table, i64(0))

    config = tf.SessionConfig(backends=backends)
    (graph_a, count_a, read_a), (graph_b, count_b, read_b) = build(), build()
    with tf.Session(graph=graph_a, config=config) as a, tf.Session(graph=graph_b, config=config) as b:
        threads = [
            threading.Thread(target=lambda s=s, c=c: [s.run(c) for _ in range(200)], daemon=True)
            for s, c in ((a, count_a), (b, count_b)) * 2
        ]
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        finally:
            sys.setswitchinterval(before)
        assert a.run(read_a) == b.run(read_b) == 800, "counted under a lock: nothing is lost"
        assert launches()["counters made"] == 1
        tf.Session.reset(containers=["counted together"])
        assert launches()["counters closed"] == 1
        assert a.run(count_a) == 1 and b.run(read_b) == 1, "plans are made again for the new table"
        assert launches()["counters made"] == 2


def test_a_table_is_saved_and_restored(tmp_path, session, toy_ops):
    """Through operations of its own: it stands in a checkpoint beside the variables."""
    table, v = toy_ops.counters(), tf.get_variable("v", initializer=1.0)

    class Saved(tf.train.SaveableObject):
        def __init__(self, keys):
            self.keys = keys
            specs = [tf.train.SaveSpec(toy_ops.counted(table, i64(k)), "", f"table/{k}") for k in keys]
            super().__init__(table.op, specs, "table")

        def restore(self, restored_tensors, restored_shapes):
            now = [toy_ops.counted(table, i64(k)) for k in self.keys]
            pairs = zip(self.keys, restored_tensors, now, strict=True)
            return tf.group(*(toy_ops.count(table, i64(k), value - old).op for k, value, old in pairs))

    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Saved([1, 2]))
    saver = tf.train.Saver()
    count = [toy_ops.count(table, i64(k), i64(k * 10)) for k in (1, 2)]
    session.run([v.initializer, *count])
    path = saver.save(session, str(tmp_path / "m"))
    assert session.run([v.assign_add(1.0), *count])[1:] == [20, 40]
    assert [name for name, _ in tf.train.list_variables(path)] == ["table/1", "table/2", "v"]
    with tf.Session(config=session.config) as other:
        for each in (session, other):
            saver.restore(each, path)
            assert each.run([v, *(toy_ops.counted(table, i64(k)) for k in (1, 2))]) == [1.0, 10, 20]


def test_the_empty_container_is_private_and_closed_with_its_session(toy_ops, backends):
    config = tf.SessionConfig(backends=backends)
    with tf.Graph().as_default():
        count = toy_ops.count(toy_ops.counters(), i64(0), i64(1))
        with tf.Session(config=config) as one, tf.Session(config=config) as two:
            assert (one.run(count), one.run(count), two.run(count)) == (1, 2, 1)
        assert launches()["counters made"] == launches()["counters closed"] == 2


def test_one_step_may_touch_variables_and_tables(session, toy_ops):
    v = tf.Variable(np.int64(100))
    table = toy_ops.counters()
    count = toy_ops.count(table, i64(0), i64(3))
    add = v.assign_add(count)
    session.run(v.initializer)
    assert [session.run(add) for _ in range(2)] == [103, 109]
    seen = tf.RunMetadata()
    session.run(add, run_metadata=seen)
    assert {str(r) for r in seen.plan.lock_set.writes} == {"variable 'Variable'", "toy.Counters 'Counters'"}


def test_a_step_that_calls_python_locks_each_access_alone(session, toy_ops):
    table = toy_ops.counters()
    count = toy_ops.count(table, i64(0), i64(1))
    nested = tf.py_func(lambda: session.run(count), [], tf.int64)
    with tf.control_dependencies([nested]):
        after = toy_ops.count(table, i64(0), i64(10))
    assert session.run([nested, after]) == [1, 11]
    assert session.run([nested, after]) == [12, 22]


def test_a_name_of_two_kinds_is_refused(session, toy_ops):
    with tf.container("mixed"):
        v = tf.Variable(np.int64(1), name="thing")
        table = toy_ops.counters(shared_name="thing")
    count = toy_ops.count(table, i64(0), i64(1))
    session.run(v.initializer)
    with pytest.raises(tf.errors.AlreadyExistsError) as caught:
        session.run(count)
    assert "container 'mixed' has a variable named 'thing'" in str(caught.value)
    assert "toy.Counters" in str(caught.value)
    with pytest.raises(tf.errors.AlreadyExistsError, match="thing"):
        session.run(tf.group(count.op, v.assign_add(np.int64(1), read_value=False)))
    tf.Session.reset(containers=["mixed"])
    assert session.run(count) == 1


def test_other_attributes_are_another_resource(session, toy_ops):
    tables = [toy_ops.counters(shared_name="t", start=start) for start in (1, 2)]
    assert session.run(toy_ops.counted(tables[0], i64(0))) == 1
    with pytest.raises(tf.errors.FailedPreconditionError, match="toy.Counters 't' exists in this session with other"):
        session.run(toy_ops.counted(tables[1], i64(0)))


def test_a_handle_of_another_kind_is_refused_with_the_op_and_its_line(session, toy_ops):
    v = tf.Variable(np.int64(1))
    wrong = toy_ops.counted(v.handle, i64(0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="toy.Counted takes a handle to a toy.Counters") as caught:
        session.run(wrong)
    assert caught.value.op_name == wrong.op.name and "test_resources_of_plugins.py" in caught.value.site
    assert "a handle to a variable" in caught.value.got
    from graphdock.ops import apply_op

    read = apply_op("ReadVariableOp", resource=toy_ops.counters(), dtype=tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ReadVariableOp takes a handle to a variable"):
        session.run(read)


# -- kinds registered in memory


class Lab:
    """A plugin with a kind, an op that makes handles to it, and one that passes a function's result through it."""

    def __init__(self, **kind):
        self.host, self.made, self.failure = Host(), [], None
        self.kind = ResourceKind("lab.Box", self._create, **kind)
        self.host.register("lab", self)
        names = tuple(AttrDef(n, "string", "") for n in ("container", "shared_name"))
        handle = ArgDef("box", "resource", "[]")
        self.make = OpDef("lab.Make", outputs=(handle,), attrs=names, executes="handle", resource="lab.Box")
        self.use = OpDef(
            "lab.Use",
            inputs=(ArgDef("box", "resource", "[]", access="uses", resource="lab.Box"), ArgDef("x", "float32", "[*S]")),
            outputs=(ArgDef("y", "float32", "[*S]"),),
        )
        for opdef in (self.make, self.use):
            self.host.ops.add(opdef, "lab")
        self.called = lambda box: None
        self.host.kernels.add(KernelDef("lab.Use", "cpu", self._build, modes=("fresh",)), "user", "lab")

    @hookimpl
    def register_resource_kinds(self):
        return [self.kind]

    def _create(self, request):
        if self.failure is not None:
            raise self.failure
        self.made.append(request)
        return object()

    def _build(self, ctx):
        def use(box, x):
            self.called(box)
            return x.copy()

        return Bound(use)

    def ops(self):
        graph = tf.get_default_graph()
        box = graph.create_op("lab.Make", [], op_def=self.make, name="box").outputs[0]
        return box, graph.create_op("lab.Use", [box, tf.constant([1.0])], op_def=self.use).outputs[0]


def test_a_kind_that_synchronises_itself_is_not_locked():
    """Two steps are inside of it at once."""
    lab, both = Lab(lock="own"), threading.Barrier(2, timeout=60)
    with tf.Graph().as_default():
        _, y = lab.ops()
        with tf.Session(host=lab.host) as sess:
            sess.run(y)
            lab.called = lambda box: both.wait()
            threads = [threading.Thread(target=sess.run, args=(y,), daemon=True) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert not both.broken and not any(t.is_alive() for t in threads)
    assert len(lab.made) == 1


def test_a_kind_that_steps_lock_keeps_users_apart():
    lab, inside, most = Lab(), [0], [0]
    with tf.Graph().as_default():
        _, y = lab.ops()
        with tf.Session(host=lab.host) as sess:
            sess.run(y)

            def called(box):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                threading.Event().wait(0.001)
                inside[0] -= 1

            lab.called = called
            threads = [threading.Thread(target=sess.run, args=(y,), daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
    assert most[0] == 1


def test_what_a_kind_fails_to_make_fails_the_step_and_is_tried_again():
    lab = Lab()
    with tf.Graph().as_default():
        _, y = lab.ops()
        with tf.Session(host=lab.host) as sess:
            lab.failure = RuntimeError("no boxes today")
            with pytest.raises(
                tf.errors.InternalError, match="lab.Box 'box' could not be made.*no boxes today"
            ) as caught:
                sess.run(y)
            assert caught.value.op_name == "box" and caught.value.__cause__ is lab.failure
            lab.failure = None
            assert sess.run(y).tolist() == [1.0]


def test_a_kind_that_nobody_registers_is_named():
    host = Host()
    lost = OpDef("lost.Make", outputs=(ArgDef("h", "resource", "[]"),), executes="handle", resource="lost.Kind")
    use = OpDef("lost.Use", inputs=(ArgDef("h", "resource", "[]", access="uses", resource="lost.Kind"),))
    for opdef in (lost, use):
        host.ops.add(opdef, "lost")
    host.kernels.add(KernelDef("lost.Use", "cpu", lambda ctx: lambda h: None), "user", "lost")
    with tf.Graph().as_default() as graph:
        handle = graph.create_op("lost.Make", [], op_def=lost).outputs[0]
        used = graph.create_op("lost.Use", [handle], op_def=use)
        with (
            tf.Session(host=host) as sess,
            pytest.raises(tf.errors.NotFoundError, match="no resource kind named 'lost.K"),
        ):
            sess.run(used)


def test_a_handle_that_no_handle_op_made_is_refused():
    host = Host()
    make = OpDef("odd.Make", outputs=(ArgDef("h", "resource", "[]"),), traits=frozenset({"stateful"}))
    use = OpDef("odd.Use", inputs=(ArgDef("h", "resource", "[]", access="uses", resource="odd.Kind"),))
    for opdef in (make, use):
        host.ops.add(opdef, "odd")
    for opdef in (make, use):
        host.kernels.add(KernelDef(opdef.name, "cpu", lambda ctx: lambda *a: "a handle"), "user", "odd")
    with tf.Graph().as_default() as graph:
        handle = graph.create_op("odd.Make", [], op_def=make).outputs[0]
        used = graph.create_op("odd.Use", [handle], op_def=use)
        with tf.Session(host=host) as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(used)
    text = str(caught.value)
    assert "odd.Use takes a handle to a odd.Kind" in text and "is made by a odd.Make" in text
    assert "only ops that execute as handle make handles" in text
