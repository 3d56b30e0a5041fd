"""Tensors joined and cut whose shapes only a step knows: one plan and one compiled function, beside the cpu plugin's kernels."""

from __future__ import annotations

import re

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import FRESH, ArgInfo, BuildContext, OutInfo, build_kernel, errors
from graphdock.contracts.ir import arg_of
from graphdock_cpu.kernels import array, views
from graphdock_llvm.joins_text import TEXT
from graphdock_llvm.kernels import joins

GENERIC = {"backends": ("llvm", "cpu"), "shape_policy": "generic", "intra_op_threads": 2}
CPU = {**GENERIC, "backends": ("cpu",)}
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
KERNELS = {
    kernel.op: [kernel, *[k for k in (*array.KERNELS, *views.KERNELS) if k.op == kernel.op]] for kernel in joins.KERNELS
}
OPS = ("concat", "stack", "split", "split_v", "unstack")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(tf.as_dtype(dtype).np)


class Drawn:
    """An op over tensors of which a plan knows some dims, and what may be fed; ``at`` is the axis counted from the first."""

    def __init__(self, seed):
        self.rng, self.op, self.dtype = np.random.default_rng(seed), OPS[seed % len(OPS)], DTYPES[seed % len(DTYPES)]
        rng = self.rng
        self.rank = int(rng.integers(1 if self.op == "stack" else 2, 5))
        least = 0 if self.op in ("concat", "stack") else 1
        axes = self.rank + (self.op == "stack")
        self.at = int(rng.integers(least, axes))
        axis = self.at - axes if rng.random() < 0.5 else self.at
        self.count = int(rng.integers(1, 6))
        self.known = [int(n) for n in rng.integers(1, 6, self.rank)]
        self.sizes = [int(n) for n in rng.integers(0, 5, self.count)]
        self.rest = bool(rng.random() < 0.4)  # a size that is computed from the others
        self.open = rng.random(self.rank) < 0.6
        unranked = rng.random() < 0.15
        along, dims = self.at, [None if o else n for o, n in zip(self.open, self.known, strict=True)]
        dtype = tf.as_dtype(self.dtype)
        if self.op in ("concat", "stack"):
            shapes = [list(dims) for _ in range(self.count)]
            if self.op == "concat":
                for shape, size in zip(shapes, self.sizes, strict=True):
                    shape[along] = None if self.open[along] else size
            self.fed = [tf.placeholder(dtype, None if unranked else shape) for shape in shapes]
            values = [*self.fed, self.fed[0]] if rng.random() < 0.3 else self.fed  # one of them twice
            self.again = len(values) > len(self.fed)
            self.fetches = tf.concat(values, axis) if self.op == "concat" else tf.stack(values, axis)
        else:
            if self.op == "split_v" and not self.rest or self.op == "unstack":
                dims[along] = sum(self.sizes) if self.op == "split_v" else self.count
            elif not self.open[along]:
                dims[along] = (
                    sum(self.sizes) if self.op == "split_v" else self.count * max(1, self.known[along] // self.count)
                )
            self.known[along] = dims[along] or self.known[along]
            self.fed = [tf.placeholder(dtype, None if unranked else dims)]
            (value,) = self.fed
            if self.op == "split":
                self.fetches = tf.split(value, self.count, axis)
            elif self.op == "split_v":
                sizes = [*self.sizes[:-1], -1] if self.rest else self.sizes
                self.fetches = tf.split(value, sizes, axis, num=self.count)
            else:
                self.fetches = tf.unstack(value, self.count, axis)
            if self.count > 2:
                self.fetches = self.fetches[1:]  # nobody reads the first

    def shape(self):
        most = int(self.rng.choice([1, 3, 9]))
        shape = [int(self.rng.integers(0, most + 1)) if o else n for o, n in zip(self.open, self.known, strict=True)]
        if self.rng.random() < 0.1 and self.open[0] and self.rank < 4:
            shape[0] = 3000  # enough for threads
        return shape

    def feed(self, step):
        shape, arrays = self.shape(), []
        for i in range(len(self.fed)):
            its = list(shape)
            if self.op == "concat":
                its[self.at] = int(self.rng.integers(0, 5)) if self.open[self.at] else self.sizes[i]
            elif self.op == "split":
                its[self.at] = self.count * (its[self.at] if self.open[self.at] else its[self.at] // self.count)
            elif self.op == "split_v":
                its[self.at] = sum(self.sizes)
                if self.rest and self.open[self.at]:
                    its[self.at] = sum(self.sizes[:-1]) + int(self.rng.integers(0, 5))
            elif self.op == "unstack":
                its[self.at] = self.count
            arrays.append(numbers(*its, seed=step + i, dtype=self.dtype))
        if self.rng.random() < 0.3:  # with gaps, and turned around
            arrays = [np.repeat(a, 2, -1)[..., ::-2] if a.ndim else a for a in arrays]
        return dict(zip(self.fed, arrays, strict=True))

    def wanted(self, feed):
        arrays = [feed[value] for value in self.fed]
        if self.op in ("concat", "stack"):
            arrays = [*arrays, arrays[0]] if self.again else arrays
            return [(np.concatenate if self.op == "concat" else np.stack)(arrays, self.at)]
        (whole,) = arrays
        if self.op == "split_v":
            made = np.split(whole, np.cumsum(self.sizes[:-1]), self.at)
        else:
            made = np.split(whole, self.count, self.at)
        made = [m.squeeze(self.at) for m in made] if self.op == "unstack" else made
        return made[1:] if self.count > 2 else made


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_random_joins_of_any_shape_agree_with_numpy_and_the_cpu(seed, debug, compiles):
    drawn = Drawn(seed)
    with (
        tf.Session(config=tf.SessionConfig(**GENERIC, debug=debug)) as fused,
        tf.Session(config=tf.SessionConfig(**CPU)) as cpu,
    ):
        for step in range(8):
            feed = drawn.feed(step)
            made, want = fused.run(drawn.fetches, feed), cpu.run(drawn.fetches, feed)
            made, want = (x if isinstance(x, list) else [x] for x in (made, want))
            for got, its, meant in zip(made, want, drawn.wanted(feed), strict=True):
                assert got.dtype == its.dtype and got.shape == its.shape, (seed, step)
                np.testing.assert_array_equal(got, its)
                np.testing.assert_array_equal(got, meant)
        kernels = fused.explain(drawn.fetches, feed).kernels()
        named = {"stack": "pack", "unstack": "unpack"}.get(drawn.op, drawn.op)
        empty = all(v.shape.rank is not None and 0 in v.shape.as_list() for v in drawn.fed)
        if not empty and f"llvm.{named}" not in kernels:
            assert drawn.op in OPS[2:] or drawn.rank < 2, kernels
    assert [text for text in compiles if text == TEXT] in ([], [TEXT])


def _words(session, fetches, feed):
    with pytest.raises(errors.InvalidArgumentError) as refused:
        session.run(fetches, feed)
    return type(refused.value), str(refused.value), refused.value.op


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("between", [False, True])
def test_shapes_that_do_not_fit_are_refused_in_the_words_of_the_cpu_and_nothing_is_lost(between, debug):
    """First and later, in a run of native calls and alone; a good step follows each."""
    a, b = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
    v = tf.placeholder(tf.float32)
    x, y = (tf.tanh(a * 2.0), tf.tanh(b * 2.0)) if between else (a, b)
    joined = {
        "concat": tf.concat([x, y], -1),
        "stack": tf.stack([x, y], 1),
        "split": tf.split(x, 3, 1),
        "rest": tf.split(x, [2, -1], 1),
        "sizes": tf.split(x, [2, 4], 1),
        "unstack": tf.unstack(x, 6, 1),
        "unranked": tf.concat([v, v], 1),
    }
    if between:
        joined = {name: tf.nest.map_structure(tf.nn.relu, value) for name, value in joined.items()}
    good = {a: numbers(4, 6), b: numbers(4, 6, seed=1), v: numbers(2, 3)}
    wrong = {
        "concat": [{b: numbers(3, 6)}, {a: numbers(0, 6)}],
        "stack": [{b: numbers(4, 5)}, {b: numbers(5, 6)}],
        "split": [{a: numbers(4, 7)}],
        "rest": [{a: numbers(4, 1)}],
        "sizes": [{a: numbers(4, 7)}, {a: numbers(4, 0)}],
        "unstack": [{a: numbers(4, 5)}],
        "unranked": [{v: numbers(3)}, {v: np.float32(1)}],
    }
    for name, value in joined.items():
        with (
            tf.Session(config=tf.SessionConfig(**GENERIC, debug=debug)) as fused,
            tf.Session(config=tf.SessionConfig(**CPU)) as cpu,
        ):
            want = cpu.run(value, good)
            for bad in wrong[name] * 2:
                assert _words(fused, value, {**good, **bad}) == _words(cpu, value, {**good, **bad}), name
                for _ in range(2):
                    np.testing.assert_allclose(
                        np.concatenate([np.ravel(m) for m in fused.run(value, good)]),
                        np.concatenate([np.ravel(m) for m in want]),
                        1e-5,
                        1e-5,
                    )


@pytest.mark.parametrize(
    ("shapes", "made"),
    [
        ([(4, 6), (3, 6)], lambda a, b: tf.concat([a, b], -1)),
        ([(4, 6), (4, 5)], lambda a, b: tf.concat([a, b], 0)),
        ([(4, 6), (6,)], lambda a, b: tf.concat([a, b], 0)),
        ([(4, 6), (4, 6)], lambda a, b: tf.concat([a, b], 2)),
        ([(), ()], lambda a, b: tf.concat([a, b], 0)),
        ([(4, 6), (4, 5)], lambda a, b: tf.stack([a, b], 1)),
        ([(4, 6), (4, 6)], lambda a, b: tf.stack([a, b], -4)),
        ([(4, 7)], lambda a: tf.split(a, 3, -1)),
        ([(4, 6)], lambda a: tf.split(a, 3, 2)),
        ([(4, 7)], lambda a: tf.split(a, [2, 4], 1)),
        ([(4, 1)], lambda a: tf.split(a, [2, -1], 1)),
        ([(4, 6)], lambda a: tf.split(a, [2, 4], -3)),
        ([(4, 5)], lambda a: tf.unstack(a, 6, 1)),
        ([(4,)], lambda a: tf.unstack(a, 4, 1)),
    ],
)
def test_a_kernel_by_itself_raises_the_error_of_the_cpus(shapes, made):
    """Shape rules see to it that a step asks for none of these: kernels say so all the same, and go on."""
    fed = [tf.placeholder(tf.float32) for _ in shapes]
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        nodes = session.explain(made(*fed)).plan.graph.nodes
    (node,) = [n for n in nodes if n.op in KERNELS]
    fixed = [v.node.attrs["value"] if v.node is not None and v.node.verb == "constant" else None for v in node.inputs]
    given = iter([numbers(*shape) for shape in shapes])
    arrays = [next(given) if value is None else value for value in fixed]
    named = zip(arg_of(node), node.inputs, fixed, strict=True)
    inputs = [ArgInfo(arg.name, v.dtype, v.shape, "host", value) for arg, v, value in named]
    outputs = [OutInfo(v.name, v.dtype, v.shape, "host", FRESH) for v in node.outputs]
    said = []
    for kernel in KERNELS[node.op]:
        bound = build_kernel(kernel, BuildContext(node, tuple(inputs), tuple(outputs), None))
        args = [i.index for i in bound.args] if bound.args else range(len(arrays))
        with pytest.raises(errors.InvalidArgumentError) as refused:
            bound.compute(*[arrays[i] for i in args])
        said.append((type(refused.value), refused.value.message))
    assert len(said) == 2 and said[0] == said[1]


@pytest.mark.plain
def test_a_cell_of_any_batch_is_one_native_call_and_one_object(compiles):
    w = np.random.default_rng(2).normal(size=(48, 128)).astype(np.float32) * 0.3
    weights, x = tf.placeholder(tf.float32, w.shape), tf.placeholder(tf.float32, [None, 2, 16])
    c = s = tf.placeholder(tf.float32, [None, 32])
    for row in tf.unstack(x, axis=1):
        gates = tf.split(tf.matmul(tf.concat([row, s], 1), weights), 4, 1)
        c = tf.sigmoid(gates[0]) * c + tf.sigmoid(gates[1]) * tf.tanh(gates[2])
        s = tf.sigmoid(gates[3]) * tf.tanh(c)
    state, total = s.graph.get_operations()[2].outputs[0], tf.stack([s, c], 1)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        fetched = session.explain(total)
        step = fetched.source.partition("def step")[2]
        assert not [k for k in fetched.kernels() if k.startswith("cpu.")], fetched.kernels()
        assert len(re.findall(r"\ba\d+\(", step)) == 1 and not re.findall(r"\bk\d+\(", step), step
        known = None
        for rows in (3, 1, 0, 7, 50, 3):
            rng = np.random.default_rng(rows)
            feed = {
                weights: w,
                x: rng.normal(size=(rows, 2, 16)).astype(np.float32),
                state: rng.normal(size=(rows, 32)).astype(np.float32),
            }
            cell = hidden = feed[state]
            for t in range(2):
                i, f, g, o = np.split(np.concatenate([feed[x][:, t], hidden], 1) @ w, 4, 1)
                cell = cell / (1 + np.exp(-i)) + np.tanh(g) / (1 + np.exp(-f))
                hidden = np.tanh(cell) / (1 + np.exp(-o))
            np.testing.assert_allclose(session.run(total, feed), np.stack([hidden, cell], 1), 1e-4, 1e-5)
            known = known or len(compiles)
            assert len(compiles) == known


def test_keys_that_are_kept_are_joined_with_new_ones_of_any_batch_and_length(compiles):
    kept, new = tf.placeholder(tf.float32, [None, 4, None, 16]), tf.placeholder(tf.float32, [None, 4, None, 16])
    both = tf.concat([kept, new], 2)
    heads = tf.concat(tf.unstack(both, 4, 1), -1)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain([both, heads]).kernels() == {"llvm.concat": 2, "llvm.unpack": 1}
        for batch, before, more in ((2, 5, 1), (2, 6, 1), (2, 7, 1), (1, 0, 9), (3, 8, 0), (0, 3, 1), (9, 200, 60)):
            a, b = numbers(batch, 4, before, 16), numbers(batch, 4, more, 16, seed=1)
            made = session.run([both, heads], {kept: a, new: b})
            want = np.concatenate([a, b], 2)
            np.testing.assert_array_equal(made[0], want)
            np.testing.assert_array_equal(made[1], want.transpose(0, 2, 1, 3).reshape(batch, before + more, 64))
        assert len(compiles) == 1


def test_what_a_step_alone_can_say_stays_the_cpus_and_explain_says_why():
    x, axis, size = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    fetches = {
        "its axis is not known": tf.concat([x, x], axis),
        "how long its parts are is not known": tf.split(x, tf.stack([size, -1]), 1, num=2),
        "its parts have no gaps: they are views": tf.unstack(x, 4, 0),
    }
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for why, value in fetches.items():
            report = session.explain(value).text(lost=True)
            assert why in report, report
        joined, parts = session.run(list(fetches.values())[:2], {x: numbers(4, 5), axis: -1, size: 2})
        np.testing.assert_array_equal(joined, np.concatenate([numbers(4, 5)] * 2, 1))
        np.testing.assert_array_equal(parts[1], numbers(4, 5)[:, 2:])


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_rows_of_few_elements_are_copied_as_they_are(dtype, size):
    x = tf.placeholder(tf.as_dtype(dtype), [None, size])
    both = tf.concat([x, x, x], 1)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for rows in (1, 5, 20_000, 300_000):
            fed = numbers(rows, size, seed=rows, dtype=dtype)
            np.testing.assert_array_equal(session.run(both, {x: fed}), np.concatenate([fed] * 3, 1))


def test_parts_of_long_rows_stay_views():
    x = tf.placeholder(tf.float32, [None, 200, 512])
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(tf.split(x, 2, 1)).kernels() == {"cpu.split": 1}
        assert session.explain(tf.split(x, 8, 1)).kernels() == {"llvm.split": 1}
        halves = session.run(tf.split(x, 2, 1), {x: numbers(3, 200, 512)})
        np.testing.assert_array_equal(np.concatenate(halves, 1), numbers(3, 200, 512))
