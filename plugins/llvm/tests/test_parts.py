"""Parts of tensors and transposed matrices that regions read where they lie."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes
from graphdock_llvm import target
from graphdock_llvm.primitives import what_forbids

LLVM = {"backends": ("llvm", "cpu"), "intra_op_threads": 2}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def _part(rng, x, value):
    """Something smaller of a tensor of rank 2 and more, by NumPy and by an op."""
    axis = int(rng.integers(x.ndim))
    size = x.shape[axis]
    match int(rng.integers(6)):
        case 0 if size % 2 == 0:
            which = int(rng.integers(2))
            return np.split(x, 2, axis)[which], tf.split(value, 2, axis)[which]
        case 1 if size > 2:
            sizes = [1, size - 2, 1]
            return np.split(x, [1, size - 1], axis)[1], tf.split(value, sizes, axis)[1]
        case 2 if x.ndim > 2:
            which = int(rng.integers(size))
            return np.take(x, which, axis), tf.unstack(value, axis=axis)[which]
        case 3:
            begin = [int(rng.integers(n)) for n in x.shape]
            size = [int(rng.integers(1, n - b + 1)) for n, b in zip(x.shape, begin, strict=True)]
            return x[tuple(slice(b, b + n) for b, n in zip(begin, size, strict=True))], tf.slice(value, begin, size)
        case 4:
            step = int(rng.integers(1, 3))
            index = (*(slice(None) for _ in range(axis)), slice(int(rng.integers(size)), None, step))
            return x[index], value[index]
        case _:
            order = [int(i) for i in rng.permutation(x.ndim)]
            return np.transpose(x, order), tf.transpose(value, order)


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_parts_agree_with_numpy(seed):
    """Read element by element, in sums along rows and over them, and in products, beside the whole."""
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(2, 40 if seed % 2 else 12, int(rng.integers(2, 4)))]
    x = rng.normal(size=shape).astype(np.float32)
    fed = tf.placeholder(tf.float32, x.shape)
    whole, value = np.tanh(x) * 2, tf.tanh(fed) * 2.0
    wanted, fetches = [whole], [value]
    for _ in range(3):
        part, said = whole, value
        for _ in range(int(rng.integers(1, 3))):
            if part.ndim > 1:
                part, said = _part(rng, part, said)
        other = rng.normal(size=part.shape).astype(np.float32)
        wanted.append(np.maximum(part * other, 0) + 1)
        fetches.append(tf.nn.relu(said * other) + 1.0)
        if part.ndim > 1:
            wanted += [(part * part).sum(-1), (part - part.mean(tuple(range(part.ndim - 1)))) * 3]
            fetches += [
                tf.reduce_sum(said * said, -1),
                (said - tf.reduce_mean(said, list(range(part.ndim - 1)))) * 3.0,
            ]
        if part.ndim == 2:
            w = rng.normal(size=(part.shape[1], 24)).astype(np.float32)
            wanted += [np.tanh(part @ w + 1), np.tanh(part.T @ part)]
            fetches += [tf.tanh(tf.matmul(said, w) + 1.0), tf.tanh(tf.matmul(said, said, transpose_a=True))]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        made = session.run(fetches, {fed: x})
    for got, want in zip(made, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_gates_are_no_copies_but_what_is_fetched_is():
    x, w = (np.random.default_rng(i).normal(size=s).astype(np.float32) for i, s in enumerate([(50, 256), (256, 512)]))
    fed = tf.placeholder(tf.float32, x.shape)
    product = tf.matmul(fed, w) + 1.0
    gates = tf.split(product, 4, 1)
    cell = tf.sigmoid(gates[0]) * tf.tanh(gates[1]) + tf.sigmoid(gates[2])
    want = np.split(x @ w + 1, 4, 1)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        explained = session.explain(cell)
        assert explained.kernels() == {"llvm.region": 2}
        made, second, again = session.run([cell, gates[1], tf.concat(gates, 1)], {fed: x})
    one = 1 / (1 + np.exp(-np.array(want)))
    np.testing.assert_allclose(made, one[0] * np.tanh(want[1]) + one[2], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second, want[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(again, x @ w + 1, rtol=1e-4, atol=1e-4)


def test_a_part_beside_its_dying_whole_is_read_before_that_is_written_over():
    x = np.random.default_rng(3).normal(size=(64, 64)).astype(np.float32)
    fed = tf.placeholder(tf.float32, x.shape)
    whole = tf.matmul(fed, fed)
    left, right = tf.split(whole, 2, 1)
    swapped = tf.concat([right * 2.0, left * 3.0], 1)
    mixed = tf.tanh(whole) + 1.0
    halves = tf.tanh(left) * tf.tanh(right) + tf.split(mixed, 2, 1)[1]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        a, b, c = session.run([swapped, mixed, halves], {fed: x})
    want = x @ x
    np.testing.assert_allclose(a, np.concatenate([want[:, 32:] * 2, want[:, :32] * 3], 1), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(b, np.tanh(want) + 1, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(c, np.tanh(want[:, :32]) * np.tanh(want[:, 32:]) + b[:, 32:], rtol=1e-4, atol=1e-4)


def test_a_part_of_a_variable_is_what_it_held_when_it_was_read():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    variable = tf.Variable(x, use_resource=True)
    half = tf.split(variable.read_value(), 2, 1)[1]
    with tf.control_dependencies([half]):
        written = variable.assign_add(np.full_like(x, 10))
    with tf.control_dependencies([written]):
        later = tf.tanh(half) * 0.0 + half * 2.0
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(variable.initializer)
        for turn in range(3):
            np.testing.assert_array_equal(session.run(later), (x + 10 * turn)[:, 2:] * 2)


def test_while_its_code_is_compiled_a_step_cuts_by_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    x = np.random.default_rng(5).normal(size=(6, 10)).astype(np.float32)
    fed = tf.placeholder(tf.float32, x.shape)
    left, right = tf.split(tf.nn.softmax(fed), 2, 1)
    y = tf.square(left) * 7.0 - right * 1.25
    soft = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    told = tf.RunMetadata()
    options = {"llvm": {"compile": "meanwhile"}}
    with tf.Session(config=tf.SessionConfig(**LLVM, options=options)) as session:
        while told.plan is None or told.plan.later:
            made = session.run(y, {fed: x}, run_metadata=told)
            np.testing.assert_allclose(made, soft[:, :5] ** 2 * 7 - soft[:, 5:] * 1.25, rtol=1e-5, atol=1e-6)
        assert session.explain(y).kernels() == {"llvm.region": 2}


def test_parts_in_branches_and_loops_are_right():
    x = np.random.default_rng(6).normal(size=(8, 6)).astype(np.float32)
    fed, many = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.int32, [])

    def body(i, v):
        left, right = tf.split(v, 2, 1)
        return i + 1, tf.concat([tf.tanh(right) * 0.5, tf.tanh(left) + fed[:, :3]], 1)

    _, looped = tf.while_loop(lambda i, _: i < many, body, [0, fed])
    taken = tf.cond(many > 2, lambda: tf.tanh(fed[:, 1:3]) * 2.0, lambda: tf.nn.relu(fed[:, 2:4]) + 1.0)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        for turns in (0, 1, 5):
            want = x
            for _ in range(turns):
                want = np.concatenate([np.tanh(want[:, 3:]) * 0.5, np.tanh(want[:, :3]) + x[:, :3]], 1)
            got, branch = session.run([looped, taken], {fed: x, many: turns})
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
            either = np.tanh(x[:, 1:3]) * 2 if turns > 2 else np.maximum(x[:, 2:4], 0) + 1
            np.testing.assert_allclose(branch, either, rtol=1e-5, atol=1e-6)


def test_views_of_views_are_read_where_the_first_one_lies():
    x = np.random.default_rng(6).normal(size=(2, 4, 3, 5)).astype(np.float32)
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, x.shape)
        first = tf.transpose(tf.exp(fed), [0, 3, 1, 2])
        y = tf.tanh(tf.transpose(first[:, 1:], [0, 2, 3, 1])) * 2.0
        with tf.Session(config=tf.SessionConfig(backends=["llvm", "cpu"])) as session:
            np.testing.assert_allclose(session.run(y, {fed: x}), 2 * np.tanh(np.exp(x[..., 1:])), rtol=1e-5)


def test_rows_with_gaps_are_refused():
    f32 = dtypes.float32
    program = RegionProgram(
        "p",
        (Axis("i", 4), Axis("j", 3)),
        (RegionInput("x", 0, f32, (4, 3), (0, 1), strides=(1, 4)),),
        (Term("input", f32, (), (0, 1), 0), Term("tanh", f32, (0,), (0, 1))),
        (RegionOutput("y", 1, f32, (4, 3), (0, 1)),),
    )
    assert what_forbids(program, 16) == "x has gaps in its rows"


@pytest.mark.parametrize("rows", [6, None])
def test_all_rows_that_are_taken_apart_are_read_by_one_object(rows, monkeypatch):
    seen, compile_text = [], target._compile
    monkeypatch.setattr(target, "_alive", {})
    monkeypatch.setattr(target, "_compile", lambda text, *a, **k: (seen.append(text), compile_text(text, *a, **k))[1])
    x = np.random.default_rng(7).normal(size=(6, 40, 19)).astype(np.float32)
    fed = tf.placeholder(tf.float32, [rows, 40, 19])
    made = [tf.tanh(part) * 2.0 - tf.nn.relu(part) for part in tf.unstack(tf.exp(fed), axis=1)]
    policy = "exact" if rows else "generic"
    with tf.Session(config=tf.SessionConfig(**LLVM, shape_policy=policy)) as session:
        assert session.explain(made).kernels()["llvm.region"] == 40
        e = np.exp(x)
        for number, got in enumerate(session.run(made, {fed: x})):
            want = np.tanh(e[:, number]) * 2 - np.maximum(e[:, number], 0)
            np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    assert len(seen) < 6  # of exp, of the parts, what adds to addresses, and what runs native code


def test_updates_by_a_part_and_draws_beside_one_that_begins_elsewhere():
    x = np.random.default_rng(8).normal(size=(6, 24)).astype(np.float32)
    fed = tf.placeholder(tf.float32, x.shape)
    right = tf.split(tf.exp(fed), 2, 1)[1]
    variable, only = (tf.Variable(np.ones((6, 12), np.float32)) for _ in range(2))
    steps = [variable.assign_sub(right * 0.5 + tf.tanh(right)), only.assign(tf.tanh(right) * 2.0 + right)]
    kept = tf.nn.dropout(tf.tanh(right) * 2.0, rate=0.5, seed=3)
    found = []
    for backends in (("llvm", "cpu"), ("cpu",)):
        with tf.Session(config=tf.SessionConfig(backends=backends)) as session:
            session.run(tf.global_variables_initializer())
            numbers = [session.run([*steps, kept], {fed: x}) for _ in range(2)]
            found.append([*numbers[0], *numbers[1], *session.run([variable, only])])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)
