"""Large products with what follows them in one function: shapes around panels, transposes, specials, threads, aliasing."""

from __future__ import annotations

import os
import signal
import threading

import cffi
import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, check_program, dtypes
from graphdock.testing.region_reference import evaluate
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE
from graphdock_llvm.target import compiled, width
from graphdock_llvm.tiles import print_tiles, tiles_of

FFI = cffi.FFI()
LLVM = {"backends": ("llvm", "cpu")}
#: More than 2^28 multiplications.
LARGE = (601, 700, 650)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def program_of(extents, turned="", dtype="float32", same=False):
    """``tanh(product + bias) * residual + column``, and the product itself; with ``same`` the residual is the left matrix."""
    m, k, n = extents
    kind = dtypes.as_dtype(dtype)
    a = RegionInput("a", 0, kind, *(((k, m), (1, 0)) if "a" in turned else ((m, k), (0, 1))))
    b = RegionInput("b", 1, kind, *(((n, k), (2, 1)) if "b" in turned else ((k, n), (1, 2))))
    bias = RegionInput("bias", 2, kind, (1, n), (None, 2))
    residual = RegionInput("residual", 0 if same else 3, kind, (m, n), (0, 2))
    column = RegionInput("column", 3 if same else 4, kind, (m, 1), (0, None))
    terms = (
        Term("input", kind, (), (0, 1), 0),
        Term("input", kind, (), (1, 2), 1),
        Term("mul", kind, (0, 1), (0, 1, 2)),
        Term("sum", kind, (2,), (0, 2), (1,)),
        Term("input", kind, (), (2,), 2),
        Term("add", kind, (3, 4), (0, 2)),
        Term("tanh", kind, (5,), (0, 2)),
        Term("input", kind, (), (0, 2), 3),
        Term("mul", kind, (6, 7), (0, 2)),
        Term("input", kind, (), (0,), 4),
        Term("add", kind, (8, 9), (0, 2)),
    )
    outs = tuple(RegionOutput(f"y{t}", t, kind, (m, n), (0, 2)) for t in (10, 3))
    axes = (Axis("m", m), Axis("k", k), Axis("n", n))
    program = RegionProgram("p", axes, (a, b, bias, residual, column), terms, outs)
    check_program(program)
    return program


def call(program, arrays, lanes=0, numbers=ALONE):
    """The outputs; what stands behind them must stay as it was."""
    lanes = lanes or width()
    tiles = tiles_of(program, lanes)
    assert tiles is not None
    text = print_tiles(program, tiles, len(arrays), lanes).text()
    function = FFI.cast("void (*)(void **, int64_t *)", compiled(text))
    rooms = [np.full(int(np.prod(o.shape)) * o.dtype.size + 64, 0xA5, np.uint8) for o in program.outputs]
    outs = [room[:-64].view(o.dtype.np).reshape(o.shape) for room, o in zip(rooms, program.outputs, strict=True)]
    table = FFI.new("void *[]", [FFI.from_buffer(b) for b in (*arrays, *outs)])
    function(table, FFI.new("int64_t[]", numbers))
    assert all((room[-64:] == 0xA5).all() for room in rooms), "it wrote behind an output"
    return outs


def arrays_of(program):
    sources = {i.source: i for i in program.inputs}
    return [numbers(*sources[s].shape, seed=s, dtype=sources[s].dtype.np) for s in sorted(sources)]


def agrees(extents, turned, dtype, lanes):
    program = program_of(extents, turned, dtype)
    arrays = arrays_of(program)
    for got, want in zip(call(program, arrays, lanes), evaluate(program, arrays), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4, err_msg=f"{extents} {turned} {dtype} {lanes}")


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(
    ("extents", "turned"), [((67, 61, 95), ""), ((73, 64, 66), "a"), ((71, 77, 63), "b"), ((64, 65, 97), "ab")]
)
def test_products_of_odd_shapes_agree_with_the_reference(extents, turned, lanes):
    agrees(extents, turned, "float64" if lanes == 8 or turned == "ab" else "float32", lanes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(200))
def test_products_of_random_shapes_agree_with_the_reference(seed):
    rng = np.random.default_rng(seed)
    while True:
        extents = tuple(int(n) for n in rng.integers(16, 200, 3))
        if np.prod(extents) > 64**3:
            break
    agrees(extents, rng.choice(["", "a", "b", "ab"]), rng.choice(["float32", "float64"]), int(rng.choice([4, 8, 16])))


def test_threads_and_places_in_the_array_change_no_bit():
    program = program_of((200, 150, 300))
    arrays = arrays_of(program)
    alone, shared = call(program, arrays), call(program, arrays, numbers=(2, pool_address()))
    assert all(np.array_equal(a, b) for a, b in zip(alone, shared, strict=True))
    moved = []
    for array in arrays:  # by one byte
        room = np.empty(array.nbytes + 1, np.uint8)
        room[1:] = array.view(np.uint8).ravel()
        moved.append(room[1:])
    assert all(np.array_equal(a, b) for a, b in zip(alone, call(program, moved), strict=True))


@pytest.mark.parametrize("turned", ["", "ab"])
def test_what_is_no_number_stays_in_its_row_and_column(turned):
    program = program_of((67, 65, 71), turned)
    arrays = arrays_of(program)
    a, b = (x.T if side in turned else x for side, x in zip("ab", arrays, strict=False))
    a[66, 3], a[5, 64], b[7, 70], b[8, 0] = np.nan, np.inf, -np.inf, 1e-41
    got = call(program, arrays)[1]
    with np.errstate(all="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64)
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(np.isinf(got), np.isinf(want))
    whole = np.isfinite(want)
    assert whole.sum() == 65 * 70
    np.testing.assert_allclose(got[whole], want[whole], 1e-4, 1e-4)


def test_one_array_may_be_both_matrices_and_what_is_added():
    program = program_of((68, 68, 68), same=True)
    x, *rest = arrays_of(program)
    given = [x, x, *rest[1:]]
    for got, want in zip(call(program, given), evaluate(program, given), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_a_layer_is_one_kernel_and_its_softmax_another(dtype):
    x, w, c = (tf.placeholder(dtype, shape) for shape in ([128, 250], [200, 250], [200]))
    h = tf.matmul(x, w, transpose_b=True) + c
    y = tf.nn.softmax(0.5 * h * (1.0 + tf.erf(h * 0.7)))
    slopes = tf.gradients(y[:, 0], [x, w])
    feed = {x: numbers(128, 250), w: numbers(200, 250, seed=1), c: numbers(200, seed=2)}
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        assert sess.explain(y, feed).kernels() == {"llvm.region": 2}
        got = sess.run([y, slopes], feed)
    with tf.Session() as sess:
        want = sess.run([y, slopes], feed)
    for one, other in zip((got[0], *got[1]), (want[0], *want[1]), strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_a_variable_that_a_step_writes_is_read_as_it_was():
    x, w = tf.placeholder(tf.float32, [70, 80]), tf.Variable(numbers(80, 90, seed=1))
    y = tf.nn.relu(tf.matmul(x, w))
    with tf.control_dependencies([y]):
        train = tf.assign_sub(w, tf.matmul(x, y, transpose_a=True) * 1e-3)
    seen = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            seen.append([sess.run([y, train], {x: numbers(70, 80, seed=s)}) for s in range(3)])
    for (a, b), (c, d) in zip(*seen, strict=True):
        np.testing.assert_allclose(a, c, 1e-4, 1e-4)
        np.testing.assert_allclose(b, d, 1e-4, 1e-4)


def test_long_sums_by_a_transposed_left_matrix_need_the_registers_of_avx_512():
    taken = {
        (along, lanes, turned): tiles_of(program_of((100, along, 100), turned), lanes) is not None
        for along in (256, 257, 400)
        for lanes in (4, 8, 16)
        for turned in ("", "a")
    }
    refused = {case for case, is_taken in taken.items() if not is_taken}
    assert refused == {(along, lanes, "a") for along in (257, 400) for lanes in (4, 8)}


def test_large_products_are_ours_where_the_left_matrix_lies_as_it_is():
    taken = {
        (lanes, turned)
        for lanes in (4, 8, 16)
        for turned in ("", "a", "b")
        if tiles_of(program_of(LARGE, turned), lanes)
    }
    assert taken == {(lanes, turned) for lanes in (8, 16) for turned in ("", "b")}
    assert tiles_of(program_of(LARGE, dtype="float64"), 16) is None
    x, w, b = (tf.placeholder(tf.float32, shape) for shape in (LARGE[:2], LARGE[1:], LARGE[2:]))
    given = [numbers(*LARGE[:2]), numbers(*LARGE[1:], seed=1), numbers(*LARGE[2:], seed=2)]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        got = sess.run(tf.nn.relu(tf.matmul(x, w) + b), dict(zip((x, w, b), given, strict=True)))
    np.testing.assert_allclose(got, np.maximum(given[0] @ given[1] + given[2], 0), 1e-4, 1e-3)


#: A product that no region takes.
BY_ITSELF = "llvm.mat_mul" if width() >= 16 else "cpu.mat_mul"


def test_products_that_others_are_better_at_stay_theirs():
    """By gathered rows where registers are those of AVX-512, else the library's."""
    kernels = []
    for shape in ((8, 300, 300), (300, 300, 8), (20, 8000, 40)):  # few rows, few columns, panels too large for a stack
        x, w = tf.placeholder(tf.float32, shape[:2]), tf.placeholder(tf.float32, shape[1:])
        with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
            kernels.append(sess.explain(tf.nn.relu(tf.matmul(x, w))).kernels().get(BY_ITSELF))
    assert kernels == [1, 1, 1]


@pytest.mark.parametrize("how", ["strided", "turned", "read-only", "reversed"])
def test_fed_arrays_lie_in_any_way(how):
    x, w = tf.placeholder(tf.float32, [70, 80]), tf.placeholder(tf.float32, [80, 90])
    y = tf.nn.relu(tf.matmul(x, w) + 1.0)
    a, b = numbers(140, 160), numbers(80, 90, seed=1)
    a = {"strided": a[::2, ::2], "turned": a[:80, :70].T, "reversed": a[69::-1, 79::-1], "read-only": a[:70, :80]}[how]
    if how == "read-only":
        a = a.copy()
        a.flags.writeable = False
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        assert sess.explain(y, {x: a, w: b}).kernels() == {"llvm.region": 1}
        np.testing.assert_allclose(sess.run(y, {x: a, w: b}), np.maximum(a @ b + 1, 0), 1e-4, 1e-4)


def test_subnormals_are_numbers():
    program = program_of((64, 65, 66))
    arrays = arrays_of(program)
    arrays[0][...], arrays[1][...] = 1e-30, 1e-12
    want = np.full((64, 66), 65e-42, np.float32)
    assert (want > 0).all() and want[0, 0] < np.finfo(np.float32).tiny
    np.testing.assert_allclose(call(program, arrays)[1], want, 1e-3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_multiplies_on_threads_of_its_own():
    program = program_of((200, 150, 300))
    arrays = arrays_of(program)
    want = call(program, arrays, numbers=(2, pool_address()))
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for ever fails
        got = call(program, arrays, numbers=(2, pool_address()))
        os._exit(0 if all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sessions_on_several_threads_multiply_at_once():
    x, w = tf.placeholder(tf.float32, [130, 140]), tf.Variable(numbers(140, 150, seed=1))
    y = tf.nn.relu(tf.matmul(x, w) + 1.0)
    faults = []
    with tf.Session(config=tf.SessionConfig(**LLVM, intra_op_threads=2)) as sess:
        sess.run(tf.global_variables_initializer())
        weights = sess.run(w)

        def work(seed):
            a = numbers(130, 140, seed=seed)
            want = np.maximum(a @ weights + 1, 0)
            for _ in range(10):
                if not np.allclose(sess.run(y, {x: a}), want, 1e-3, 1e-3):
                    faults.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not faults
