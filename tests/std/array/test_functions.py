"""The public array functions against NumPy: indexing over random keys, and each function's TensorFlow 1 signature."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors
from graphdock.shape import compatible
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPE = (3, 4, 2)


def run(build: Any, *arrays: Any) -> Any:
    """``build`` of placeholders of unknown shape, and of known shape; both must give the same."""
    results = []
    for known in (True, False):
        with tf.Graph().as_default(), tf.Session() as session:
            xs = [tf.placeholder(tf.as_dtype(a.dtype), a.shape if known else None) for a in map(np.asarray, arrays)]
            out = build(*xs)
            found = session.run(out, dict(zip(xs, arrays, strict=True)))
            for tensor, value in zip(_list(out), _list(found), strict=True):
                assert compatible(tensor.shape.dims, np.shape(value))
                assert not known or tensor.shape.dims == np.shape(value)
            results.append(found)
    for a, b in zip(_list(results[0]), _list(results[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    return results[0]


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@st.composite
def keys(draw: Any) -> tuple[Any, ...]:
    """A valid NumPy basic index of SHAPE."""
    count = draw(st.integers(0, len(SHAPE)))
    items: list[Any] = []
    dots = draw(st.one_of(st.none(), st.integers(0, count)))
    axes = list(range(count)) if dots is None else [*range(dots), *range(len(SHAPE) - count + dots, len(SHAPE))]
    bound = st.one_of(st.none(), st.integers(-6, 6))
    for axis in axes:
        n = SHAPE[axis]
        step = st.one_of(st.none(), st.sampled_from([-3, -2, -1, 1, 2, 3]))
        items.append(draw(st.one_of(st.integers(-n, n - 1), st.builds(slice, bound, bound, step))))
    if dots is not None:
        items.insert(dots, Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


@settings(max_examples=150, deadline=None)
@given(keys())
@pytest.mark.slow
def test_getitem_is_numpys(key: tuple[Any, ...]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(SHAPE)
    np.testing.assert_array_equal(run(lambda t: t[key], x), x[key])


@settings(max_examples=40, deadline=None)
@given(keys())
def test_getitem_with_tensor_bounds(key: tuple[Any, ...]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(SHAPE)
    with tf.Graph().as_default(), tf.Session() as session:
        t = tf.placeholder(tf.float32, SHAPE)
        zero = tf.placeholder(tf.int32, [])

        def late(v: Any) -> Any:
            return v if v is None else v + zero

        moved = tuple(
            slice(late(k.start), late(k.stop), late(k.step))
            if isinstance(k, slice)
            else late(k)
            if isinstance(k, int)
            else k
            for k in key
        )
        found = t[moved]
        value = session.run(found, {t: x, zero: 0})
        np.testing.assert_array_equal(value, x[key])
        assert compatible(found.shape.dims, value.shape)


def test_getitem_refuses_what_it_does_not_do() -> None:
    with tf.Graph().as_default():
        x = tf.zeros([3, 4])
        for key, hint in (
            ([0, 1], "gather"),
            (np.array([True, False]), "gather"),
            (tf.constant([1]), "gather"),
            (True, "where"),
        ):
            with pytest.raises(errors.InvalidArgumentError) as raised:
                x[key]
            assert hint in (raised.value.hint or "")
        with pytest.raises(errors.DTypeError):
            x[tf.constant(1.0)]
        with pytest.raises(errors.ShapeError, match="index 3 is out of bounds for axis 0 of size 3"):
            x[3]


def test_an_error_names_the_users_line() -> None:
    with tf.Graph().as_default():
        with pytest.raises(errors.ShapeError) as raised:
            tf.concat([tf.zeros([2, 3]), tf.zeros([3, 3])], 1)
        assert "array/test_functions.py" in str(raised.value)
        assert "[2,3] and [3,3]" in str(raised.value)


def test_shapes_computed_from_shapes_are_known() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3, 4])
        b, h, w = tf.unstack(tf.shape(x))
        low, high = tf.split(tf.shape(x)[1:], 2)
        for built, dims in (
            (tf.reshape(x, [b, h * w]), (None, 12)),
            (tf.reshape(x, tf.reverse(tf.shape(x), [0])), (4, 3, None)),
            (tf.reshape(x, tf.concat([[-1], high, low], 0)), (None, 4, 3)),
            (tf.reshape(x, tf.concat([tf.fill([2], 1), [-1]], 0)), (1, 1, None)),
            (tf.zeros(tf.stack([b, 2])), (None, 2)),
            (tf.tile(x, [1, 2, b]), (None, 6, None)),
            (tf.pad(x, [[0, 0], [1, 1], [0, 2]]), (None, 5, 6)),
            (tf.pad(x, tf.stack([[0, 0], [1, h], [0, 2]])), (None, 7, 6)),
            (x[:, 1:, ::2], (None, 2, 2)),
            (x[:, -1], (None, 4)),
            (tf.broadcast_to(x[:1], tf.stack([7, h, w])), (7, 3, 4)),
        ):
            assert built.shape.dims == dims, built


def test_rearranging() -> None:
    x = np.arange(24, dtype=np.float32).reshape(SHAPE)
    np.testing.assert_array_equal(run(lambda t: tf.transpose(t), x), x.T)
    np.testing.assert_array_equal(run(lambda t: tf.transpose(t, [1, 0, 2]), x), x.transpose(1, 0, 2))
    np.testing.assert_array_equal(run(lambda t: tf.reverse(t, [0, -1]), x), x[::-1, :, ::-1])
    np.testing.assert_array_equal(run(lambda t: tf.expand_dims(t, 1), x), x[:, None])
    np.testing.assert_array_equal(run(lambda t: tf.squeeze(tf.reshape(t, [1, 24, 1]), [0]), x), x.reshape(24, 1))


def test_diagonals() -> None:
    x, v = np.arange(12.0).reshape(2, 2, 3), np.arange(1.0, 4.0)
    np.testing.assert_array_equal(run(lambda t: tf.matrix_transpose(t), x), x.swapaxes(-1, -2))
    np.testing.assert_array_equal(run(lambda t: tf.diag(t), v), np.diag(v))
    m = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(run(lambda t: tf.diag(t), m), np.diag(m.ravel()).reshape(2, 3, 2, 3))
    np.testing.assert_array_equal(run(lambda t: tf.diag_part(t), np.diag(m.ravel()).reshape(2, 3, 2, 3)), m)
    np.testing.assert_array_equal(
        run(lambda t: tf.matrix_band_part(t, 0, -1), np.ones((3, 3))), np.triu(np.ones((3, 3)))
    )


def test_joining_and_cutting() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.ones((2, 1))
    np.testing.assert_array_equal(run(lambda a, b: tf.concat([a, b], 1), x, y), np.concatenate([x, y], 1))
    np.testing.assert_array_equal(run(lambda a: tf.stack([a, a], axis=-1), x), np.stack([x, x], -1))
    for found, want in zip(run(lambda a: tf.split(a, [1, 2], axis=1), x), np.split(x, [1], 1), strict=True):
        np.testing.assert_array_equal(found, want)
    for found, want in zip(run(lambda a: tf.split(a, 3, 1), x), np.split(x, 3, 1), strict=True):
        np.testing.assert_array_equal(found, want)
    for found, want in zip(run(lambda a: tf.unstack(a, 2), x), x, strict=True):
        np.testing.assert_array_equal(found, want)
    with tf.Graph().as_default(), pytest.raises(errors.InvalidArgumentError, match="unstack cannot tell"):
        tf.unstack(tf.placeholder(tf.float32, [None, 2]))


def test_picking() -> None:
    x, i = np.arange(12.0).reshape(3, 4), np.array([[2, 0], [1, 1]])
    np.testing.assert_array_equal(run(lambda a, b: tf.gather(a, b), x, i), x[i])
    np.testing.assert_array_equal(run(lambda a, b: tf.gather(a, b, axis=1), x, i), x[:, i])
    np.testing.assert_array_equal(run(lambda a, b: tf.gather_nd(a, b), x, i), x[i[:, 0], i[:, 1]])
    np.testing.assert_array_equal(run(lambda b: tf.one_hot(b, 3), i), np.eye(3, dtype=np.float32)[i])
    np.testing.assert_array_equal(
        run(lambda b: tf.one_hot(b, 3, on_value=5, off_value=-1, axis=0), i)[2], np.where(i == 2, 5, -1)
    )
    np.testing.assert_array_equal(run(lambda a: tf.where(a > 5, a, -a), x), np.where(x > 5, x, -x))
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.where(tf.constant(x) > 5)), np.argwhere(x > 5))


def test_part_and_stitch_as_in_a_sharded_embedding() -> None:
    """The embedding layer of the TensorFlow paper: Part, a Gather per shard, Stitch."""
    table, at = np.arange(24.0).reshape(6, 4), np.array([5, 0, 3, 2, 3])
    with tf.Graph().as_default(), tf.Session() as session:
        shards = [tf.Variable(table[k::2]) for k in range(2)]
        ids = tf.placeholder(tf.int32, [None])
        owner = ids % 2
        parts = tf.dynamic_partition(ids // 2, owner, 2)
        places = tf.dynamic_partition(tf.range(tf.size(ids)), owner, 2)
        rows = tf.dynamic_stitch(places, [tf.gather(s, p) for s, p in zip(shards, parts, strict=True)])
        grads = tf.gradients(tf.reduce_sum(tf.square(rows)), shards)
        session.run(tf.global_variables_initializer())
        found, *whole = session.run([rows, *map(tf.convert_to_tensor, grads)], {ids: at})
        np.testing.assert_array_equal(found, table[at])
        want = np.zeros_like(table)
        np.add.at(want, at, 2 * table[at])
        for k in range(2):
            np.testing.assert_allclose(whole[k], want[k::2])


def test_scattering_into_variables() -> None:
    start, rows = np.arange(12.0).reshape(4, 3), np.ones((2, 3))
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(start)
        at = tf.placeholder(tf.int32, [2])
        steps = [tf.scatter_add(v, at, rows), tf.scatter_sub(v, at, 2 * rows), tf.scatter_update(v, at, 5.0)]
        for step in steps:
            session.run(tf.global_variables_initializer())
            found = session.run(step, {at: [2, 2]})
            want = start.copy()
            want[2] = {steps[0]: want[2] + 2, steps[1]: want[2] - 4, steps[2]: 5.0}[step]
            np.testing.assert_array_equal(found, want)
            with pytest.raises(errors.InvalidArgumentError, match="out of bounds"):
                session.run(step, {at: [0, 4]})
            np.testing.assert_array_equal(session.run(v), want)
        with pytest.raises(errors.InvalidArgumentError, match="changes a Variable"):
            tf.scatter_add(tf.zeros([2, 2]), [0], [[1.0, 1.0]])


def test_the_gradient_of_a_gather_is_its_rows() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(np.ones((1000, 4)))
        at = tf.placeholder(tf.int32, [None, 2])
        loss = tf.reduce_sum(tf.square(tf.gather(table, at))) + tf.reduce_sum(tf.gather(table, [7]))
        (grad,) = tf.gradients(loss, [table])
        assert isinstance(grad, tf.IndexedSlices)
        session.run(tf.global_variables_initializer())
        whole = session.run(tf.convert_to_tensor(grad), {at: [[3, 3], [9, 3]]})
        want = np.zeros((1000, 4))
        want[3], want[9], want[7] = 6, 2, 1
        np.testing.assert_array_equal(whole, want)


def test_descent_along_rows_is_descent_along_the_whole() -> None:
    start, at = np.linspace(-1, 1, 40).reshape(10, 4), [3, 3, 8]
    found = []
    for dense in (False, True):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            table = tf.Variable(start)
            rows = tf.gather(table * 1.0 if dense else table, at)
            step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(rows) * rows))
            kinds = {op.type for op in graph.get_operations()}
            assert any("Sparse" in kind for kind in kinds) is not dense
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(step)
            found.append(session.run(table))
    np.testing.assert_allclose(*found, rtol=1e-12)
    np.testing.assert_array_equal(np.delete(found[0], [3, 8], 0), np.delete(start, [3, 8], 0))


def test_growing() -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(run(lambda a: tf.tile(a, [2, 3]), x), np.tile(x, (2, 3)))
    margin = [[1, 0], [0, 2]]
    np.testing.assert_array_equal(
        run(lambda a: tf.pad(a, margin, constant_values=7), x), np.pad(x, margin, constant_values=7)
    )
    np.testing.assert_array_equal(run(lambda a: tf.pad(a, margin, "REFLECT"), x), np.pad(x, margin, "reflect"))
    np.testing.assert_array_equal(run(lambda a: tf.pad(a, margin, mode="SYMMETRIC"), x), np.pad(x, margin, "symmetric"))
    np.testing.assert_array_equal(run(lambda a: tf.broadcast_to(a, [4, 2, 3]), x), np.broadcast_to(x, (4, 2, 3)))
    flags = np.array([True, False])
    np.testing.assert_array_equal(run(lambda a: tf.pad(a, [[1, 1]]), flags), np.pad(flags, 1))


def test_making() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        n = tf.placeholder(tf.int32, [])

        def value(tensor: Any) -> Any:
            found = session.run(tensor, {n: 3})
            assert compatible(tensor.shape.dims, np.shape(found))
            return found

        np.testing.assert_array_equal(value(tf.zeros([2, 3], tf.int32)), np.zeros((2, 3), np.int32))
        np.testing.assert_array_equal(value(tf.ones([n, 2])), np.ones((3, 2), np.float32))
        np.testing.assert_array_equal(value(tf.zeros([200, 20], tf.bool)), np.zeros((200, 20), bool))
        np.testing.assert_array_equal(value(tf.fill([n], 2.5)), np.full(3, 2.5, np.float32))
        np.testing.assert_array_equal(value(tf.range(n)), np.arange(3, dtype=np.int32))
        np.testing.assert_array_equal(value(tf.range(5, 0, -2)), np.arange(5, 0, -2, dtype=np.int32))
        np.testing.assert_allclose(value(tf.range(0.0, 1.0, 0.25)), np.arange(0, 1, 0.25, dtype=np.float32))
        np.testing.assert_allclose(value(tf.linspace(0.0, 1.0, n)), np.linspace(0, 1, 3, dtype=np.float32))
        np.testing.assert_array_equal(value(tf.eye(2, 3, batch_shape=[n])), np.stack([np.eye(2, 3)] * 3))
        for indexing in ("xy", "ij"):
            wanted = np.meshgrid([1, 2], [3, 4, 5], indexing=indexing)  # type: ignore[call-overload]
            for found, want in zip(tf.meshgrid([1, 2], [3, 4, 5], indexing=indexing), wanted, strict=True):
                np.testing.assert_array_equal(value(found), want)
        np.testing.assert_array_equal(value(tf.sequence_mask([1, n, 0])), np.arange(3) < np.array([[1], [3], [0]]))
        assert value(tf.rank(tf.ones([n, 2]))) == 2 and value(tf.size(tf.ones([n, 2]))) == 6


def test_results_never_alias_feeds() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        t = tf.placeholder(tf.float32, [2, 3])
        outs = [
            tf.reshape(t, [6]),
            tf.transpose(t),
            t[0],
            tf.expand_dims(t, 0),
            *tf.unstack(t),
            *tf.split(t, 3, 1),
            tf.reverse(t, [0]),
        ]
        for found in session.run(outs, {t: x}):
            assert not np.shares_memory(found, x)


def test_views_are_recomputed_where_they_depend_on_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        source = tf.Variable(np.arange(5.0))
        at = tf.placeholder(tf.int32, [])
        picked = source[at] * 2.0
        session.run(tf.global_variables_initializer())
        assert [float(session.run(picked, {at: i})) for i in (0, 3, -1)] == [0.0, 6.0, 8.0]


@pytest.mark.plain
def test_steady_state_allocates_no_arrays() -> None:
    """After the first steps nothing of the size of the data is allocated; what is fetched is one number."""
    x = np.ones((256, 256), np.float32)
    i = np.arange(256, dtype=np.int32)
    with tf.Graph().as_default(), tf.Session() as session:
        t, ids = tf.placeholder(tf.float32, [256, 256]), tf.placeholder(tf.int32, [256])
        big = tf.concat(
            [tf.gather(t, ids), tf.transpose(t)[::-1], tf.pad(t, [[0, 0], [0, 0]]), tf.one_hot(ids, 256)], 0
        )
        big = tf.stack([tf.tile(big, [1, 2])[:, ::2], tf.reshape(tf.reshape(big, [-1]), [1024, 256])])
        small = tf.reduce_sum(big)
        call = session.make_callable(small, [t, ids])
        for _ in range(3):
            call(x, i)
        tracemalloc.start()
        call(x, i)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            call(x, i)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        assert peak < 16_384, f"{peak} bytes at the peak of a step"


def test_the_first_call_of_a_program_is_the_users_own_line(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import graphdock as tf\n\nx = tf.ones([2])\nprint(x.op.site)\n", encoding="utf-8")
    out = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert out.stdout == "program.py:3\n"


def test_concat_says_that_its_arguments_are_swapped() -> None:
    with tf.Graph().as_default(), pytest.raises(errors.InvalidArgumentError, match="axis must be a scalar integer"):
        tf.concat(0, [tf.ones([2]), tf.ones([2])])


def test_unknown_shapes_that_do_not_stack_are_refused_in_the_step() -> None:
    generic = tf.SessionConfig(shape_policy="generic")
    with tf.Graph().as_default(), tf.Session(config=generic) as session:
        x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        with pytest.raises(errors.InvalidArgumentError, match="shapes .* do not agree"):
            session.run(tf.stack([x, y]), {x: [1.0, 2.0, 3.0], y: [4.0]})


def test_no_elements_are_known_to_be_none_whatever_the_other_dims() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [0, None])
        assert tf.reshape(x, [-1, 5]).shape == [0, 5]


def test_a_function_written_by_hand_comes_before_the_generated_one() -> None:
    assert tf.concat.__module__ == "graphdock_std.array.functions"


@pytest.mark.parametrize("join", [tf.concat, tf.stack])
def test_joining_without_the_list_says_that_values_are_a_list(join: Any) -> None:
    with tf.Graph().as_default():
        a, b = tf.zeros([2, 2]), tf.zeros([2, 2])
        for given in ((a, b, 1), ([a, b], 0, 1)):
            with pytest.raises(errors.InvalidArgumentError, match="values must be a list of tensors") as raised:
                join(*given)
            assert raised.value.hint == f"write tf.{join.__name__}([a, b], axis)"
            assert "name a int" in str(raised.value.got)


def test_concat_of_two_tensors_in_no_list_does_not_drop_one() -> None:
    with tf.Graph().as_default():
        a, b = tf.zeros([2, 2]), tf.zeros([2, 2])
        with pytest.raises(errors.InvalidArgumentError, match="values must be a list"):
            tf.concat(a, b)
        for axis in (1, np.int64(1), np.array(1), tf.constant(1), tf.placeholder(tf.int32)):
            assert tf.concat(a, axis).shape == [2, 2]


def test_an_axis_that_is_no_integer_is_asked_for_as_one() -> None:
    with tf.Graph().as_default():
        x = tf.zeros([4, 4])
        for build in (
            lambda: tf.split(x, 2, axis=1.5),
            lambda: tf.concat([x, x], 1.5),
            lambda: tf.gather(x, [0], axis=1.5),
        ):
            with pytest.raises(errors.DTypeError, match="input 'axis': 1.5 cannot be int32") as raised:
                build()
            assert raised.value.hint == "pass an integer axis"


def test_margins_that_are_known_in_part_tell_their_dims() -> None:
    with tf.Graph().as_default():
        fed, x = tf.placeholder(tf.int32), tf.zeros([4, 4])
        margins = [[[1, 2], fed], [fed, [1, 2]], [[fed, 0], [1, 2]], [[1, 2], [0, fed]]]
        found = [tf.pad(x, m).shape.as_list() for m in margins]
    assert found == [[7, None], [None, 7], [None, 7], [7, None]]  # TensorFlow's


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("bounds", [(3, 0), (3, 0, 1), (0, 3, -1), (0, -3), (0, -3, 2), (3.0, 0.0), (0.5, 2.0, -0.25)])
def test_a_range_whose_limit_lies_behind_its_start_is_an_error(known: bool, bounds: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        given = [
            v if known else tf.placeholder(tf.as_dtype(np.float32 if type(v) is float else np.int32), [])
            for v in bounds
        ]
        with pytest.raises(errors.InvalidArgumentError, match="behind"):
            session.run(tf.range(*given), {} if known else dict(zip(given, bounds, strict=True)))
        for empty in ((3, 3), (3, 3, -1), (2.0, 2.0, 0.5)):
            assert session.run(tf.range(*empty)).shape == (0,)


def test_eye_of_a_number_of_unknown_rank_knows_its_batch():
    rows = tf.placeholder_with_default(2, shape=None)
    assert tf.eye(rows, batch_shape=(2, 3)).shape.as_list() == [2, 3, None, None]
    assert tf.eye(rows, 3, batch_shape=(2, 3)).shape.as_list() == [2, 3, None, 3]
    with tf.Session() as session:
        assert (
            session.run(tf.eye(3, rows, batch_shape=(2,))).tolist() == np.broadcast_to(np.eye(3, 2), (2, 3, 2)).tolist()
        )
