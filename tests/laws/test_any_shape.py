"""A plan for any shape answers as a plan for one shape does: the same results for shapes that fit, the same error for others."""

from __future__ import annotations

import re
import zlib

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import GraphdockError
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import default_host
from graphdock_opgen.samples import bindings, make_arrays, random_array
from graphdock_opgen.spec_cases import spec_cases

CASES = {
    name: case
    for package in ("graphdock.ops", "graphdock_std")
    for name, case in spec_cases(package, default_host().ops.get).items()
    if case["samples"] and "resource" not in case["args"].values()
}
#: Debug mode looks at buffers, which conformance does with every rank unknown; here outcomes are compared.
pytestmark = pytest.mark.slow
#: Sets of feeds per sample, beside the one that fits.
ROUNDS = 6


class Lab:
    """One graph, run by a session with a plan for each shape and by one with a plan for any shape."""

    def __init__(self, graph, fetches, **fields):
        self.fetches = fetches
        configs = (tf.SessionConfig(shape_policy=policy, **fields) for policy in ("exact", "generic"))
        self.exact, self.generic = (tf.Session(graph=graph, config=c) for c in configs)

    def compare(self, feeds, what, values=True, words=True, pruned=False):
        """Both outcomes, which must agree; returns whether the feeds were accepted.

        Args:
          words: whether refusals must be told in the same words. Of two faults either may be found first.
          pruned: whether the plan for one shape may have left out, as not needed, what fails in the other.
        """
        want, got = (outcome(s, self.fetches, feeds) for s in (self.exact, self.generic))
        note = f"{what}: {[(p.name, p.shape, np.shape(v)) for p, v in feeds.items()]}\n exact {want}\n generic {got}"
        assert "InternalError" not in (want[0], got[0]), note
        assert want[0] == got[0] or (pruned and want[0] == "result"), note
        if got[0] != "result":
            assert not words or told(want[1]) == told(got[1]), note
            return False
        for a, b in zip(want[1], got[1], strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype, note
            if values and a.dtype.kind in "OSU":
                assert a.tolist() == b.tolist(), note
            elif values:
                np.testing.assert_allclose(
                    a.astype(complex) if a.dtype.kind in "V" else a, b, 1e-5, 1e-5, equal_nan=True, err_msg=note
                )
        return True


def outcome(session, fetches, feeds):
    try:
        return "result", [np.asarray(r) for r in session.run(fetches, feeds)]
    except GraphdockError as error:
        return type(error).__name__, error.message


def told(message):
    """A message without the shapes and numbers in it."""
    return re.sub(r"-?\d+|\?|\[[-\d,? ]*\]", "#", message)


def loosened(rng, shape):
    """A static shape that says less."""
    if rng.random() < 0.15:
        return None
    return [None if rng.random() < 0.6 else int(d) for d in shape]


def resized(rng, arrays, static):
    """Arrays of other shapes that the static ones allow: one size for another everywhere, or one dim alone."""
    shapes = [list(a.shape) for a in arrays]
    sizes = sorted({d for s in shapes for d in s})
    if rng.random() < 0.5 and sizes:
        old, new = int(rng.choice(sizes)), int(rng.integers(0, 6))
        shapes = [[new if d == old else d for d in s] for s in shapes]
    else:
        at = int(rng.integers(len(shapes)))
        if shapes[at] and rng.random() < 0.8:
            shapes[at][rng.integers(len(shapes[at]))] = int(rng.integers(0, 5))
        else:
            shapes[at] = [int(d) for d in rng.integers(0, 4, rng.integers(0, 4))]
    made = []
    for array, shape, dims in zip(arrays, shapes, static, strict=True):
        fits = dims is None or (
            len(dims) == len(shape) and all(s in (None, d) for s, d in zip(dims, shape, strict=True))
        )
        if not fits or tuple(shape) == array.shape:
            made.append(array)
        elif array.dtype.kind in "iu":
            made.append(np.resize(array, shape) if array.size else np.zeros(shape, array.dtype))
        else:
            made.append(random_array(tf.as_dtype(array.dtype), tuple(shape), rng))
    return made


def shaken(rng, array):
    """A small integer tensor with another element; strings as they are."""
    if not array.size or array.dtype.kind in "SO":
        return array
    array = array.copy()
    array.reshape(-1)[rng.integers(array.size)] = rng.choice([-2, -1, 0, 1, 2, 3, 4, 7])
    return array


@pytest.mark.parametrize("op", sorted(CASES))
@pytest.mark.sampled(96)
def test_each_op_alone(op):
    case, opdef = CASES[op], default_host().ops.get(op)
    rng = np.random.default_rng(zlib.crc32(op.encode()))
    runs = fits = 0
    for sample in case["samples"]:
        types = next(bindings(opdef, case, sample))
        arrays = make_arrays(case, sample, types, op)
        host = {a.name for a in opdef.inputs if a.memory == "host"}
        for constants in (True, False) if host else (False,):
            with tf.Graph().as_default() as graph:
                given, fed, steering = {}, {}, []

                def tensor(name, array):
                    if name in host and constants:  # noqa: B023
                        return tf.constant(array)
                    place = tf.placeholder(array.dtype, loosened(rng, array.shape), name)
                    fed[place] = array  # noqa: B023
                    if name in host:  # noqa: B023
                        steering.append(place)  # noqa: B023
                    return place

                for name, array in arrays.items():
                    if array is not None:
                        listed = isinstance(array, tuple)
                        given[name] = [tensor(name, a) for a in array] if listed else tensor(name, array)
                attrs = {**{k: v for k, v in types.items() if k in sample["attrs"]}, **sample["attrs"]}
                free = {a.dtype for a in opdef.inputs}
                attrs |= {t.name: types[t.name] for t in opdef.types if t.name not in free and t.name in types}
                made = tf.ops.apply_op(op, **given, **attrs)
                first = made
                while isinstance(first, (list, tuple)):
                    first = next(part for part in first if part != [])
                fetches = list(first.op.outputs)
            lab = Lab(graph, fetches)
            values = "random" not in opdef.effects
            fits += lab.compare(fed, op, values)
            runs += 1
            places = list(fed)
            for _ in range(ROUNDS if places else 0):
                sizes = resized(rng, [fed[p] for p in places], [p._dims for p in places])
                other = dict(zip(places, sizes, strict=True))
                for place in steering:
                    if rng.random() < 0.4:
                        other[place] = shaken(rng, other[place])
                fits += lab.compare(other, op, values)
    assert runs and fits


class Program:
    """A random program over placeholders of partly unknown shapes; some dims only a step knows."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.places = {}
        self.pool = []
        n, m, k = (int(d) for d in self.rng.integers(1, 5, 3))
        for shape in ([n, m], [n], [m, k], [n, m], [k]):
            static = [None if self.rng.random() < 0.7 else d for d in shape]
            place = tf.placeholder(tf.float64, static)
            self.places[place] = self.rng.uniform(-2, 2, shape)
            self.pool.append(place)
        self.steer = tf.placeholder(tf.int32, [2])
        self.places[self.steer] = np.array([n, m], np.int32)
        for _ in range(14):
            try:
                made = self.step()
            except GraphdockError:
                continue  # static shapes tell already that it does not fit
            self.pool += [t for t in (made if isinstance(made, (list, tuple)) else [made]) if t.dtype is tf.float64]

    def pick(self, *items):
        return items[self.rng.integers(len(items))]

    def any(self, *ranks):
        fit = [t for t in self.pool if t.shape.rank in ranks or t.shape.rank is None]
        return self.pick(*fit[-8:])

    def step(self):
        x, y, matrix, vector = self.any(0, 1, 2, 3), self.any(0, 1, 2, 3), self.any(2), self.any(1)
        axis, size = self.pick(0, 1, -1), tf.shape(self.any(1, 2))[0]
        late = lambda: tf.gather(vector, tf.cast(tf.where(vector > 0.0)[:, 0], tf.int32))  # noqa: E731
        return self.pick(
            lambda: self.pick(tf.add, tf.multiply, tf.maximum)(x, y),
            lambda: self.pick(tf.add, tf.subtract)(vector, self.any(1)),
            lambda: tf.add_n([matrix, self.any(2)]),
            lambda: tf.matmul(matrix, self.any(2), transpose_b=bool(self.rng.integers(2))),
            lambda: tf.tanh(x),
            lambda: tf.concat([matrix, self.any(2)], axis),
            lambda: tf.stack([vector, self.any(1)], self.pick(0, 1)),
            lambda: tf.unstack(matrix, 2, axis),
            lambda: tf.split(matrix, 2, axis),
            lambda: tf.reshape(matrix, [-1]),
            lambda: tf.reshape(vector, self.pick([-1, 1], [1, -1], [-1, 2], [2, -1])),
            lambda: tf.reshape(matrix, self.steer),
            lambda: tf.reshape(x, tf.shape(y)),
            lambda: tf.reshape(matrix, [size, -1]),
            lambda: tf.broadcast_to(vector, tf.stack([self.pick(size, 2), tf.shape(vector)[0]])),
            lambda: tf.broadcast_to(vector, self.steer),
            lambda: tf.transpose(matrix),
            lambda: tf.expand_dims(vector, self.pick(0, 1)),
            lambda: tf.squeeze(matrix, [self.pick(0, 1)]),
            lambda: self.pick(tf.reduce_sum, tf.reduce_max)(matrix, axis, keepdims=bool(self.rng.integers(2))),
            lambda: tf.gather(matrix, tf.cast(tf.argmax(matrix, 0), tf.int32)),
            lambda: matrix[self.pick(slice(1, None), slice(None, 2), slice(None, None, -1), 0, slice(0, 3, 2))],
            lambda: matrix[:, : self.pick(size, 1, 2)],
            lambda: tf.slice(vector, [0], [self.pick(size, 1, 2)]),
            lambda: tf.slice(matrix, [0, 1], [-1, self.pick(1, -1)]),
            lambda: tf.tile(vector, [self.pick(size, 2)]),
            lambda: tf.pad(vector, [[1, self.pick(0, 2)]]),
            lambda: tf.fill([size, 2], tf.reduce_sum(x)),
            lambda: tf.cast(tf.range(size), tf.float64),
            lambda: tf.cast(tf.one_hot(tf.range(size), self.pick(size, 3)), tf.float64),
            lambda: tf.nn.bias_add(matrix, vector),
            lambda: tf.nn.softmax_cross_entropy_with_logits(labels=matrix, logits=self.any(2)),
            late,
            lambda: late() + late(),
            lambda: tf.cond(tf.reduce_sum(x) > 0.0, lambda: vector + 1.0, lambda: self.any(1)),
            lambda: self.loop(vector),
            lambda: tf.gradients(tf.reduce_sum(x * y), [x])[0] if x is not y else x,
        )()

    def loop(self, x):
        grow = self.pick(
            lambda a: tf.concat([a, x], 0), lambda a: a + x, lambda a: a[1:], lambda a: tf.concat([a, a], 0) + a
        )
        shape = tf.TensorShape([None])
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, grow(a)), [0, x], [tf.TensorShape([]), shape])[1]


@pytest.mark.parametrize("passes", ["all passes", "no passes"])
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(4, 8))])
@pytest.mark.sampled(4)
def test_programs(seed, passes):
    plain = {"passes": dict.fromkeys(simplifications(), False)} if passes == "no passes" else {}
    fits = runs = 0
    for number in range(12):
        with tf.Graph().as_default() as graph:
            program = Program(1000 * seed + number)
        places, rng = list(program.places), program.rng
        for fetch in program.pool[-1:4:-3]:
            lab, feeds = Lab(graph, [fetch], **plain), dict(program.places)
            for _ in range(8):
                fits += lab.compare(feeds, (seed, number), words=False, pruned=not plain)
                runs += 1
                sizes = resized(rng, [program.places[p] for p in places], [p._dims for p in places])
                feeds = dict(zip(places, sizes, strict=True))
                if rng.random() < 0.3:
                    feeds[program.steer] = shaken(rng, program.places[program.steer])
    assert fits > runs // 10


class Fusible(Program):
    """A program of mostly what becomes regions."""

    def step(self):
        if self.rng.random() < 0.25:
            return super().step()
        x, y, matrix, vector = self.any(0, 1, 2), self.any(0, 1, 2), self.any(2), self.any(1)
        axis, keep = self.pick(0, 1, -1), bool(self.rng.integers(2))
        return self.pick(
            lambda: self.pick(tf.add, tf.multiply, tf.maximum, tf.subtract)(x, y),
            lambda: self.pick(tf.add, tf.multiply)(vector, self.any(1)),
            lambda: self.pick(tf.tanh, tf.sigmoid, tf.abs)(x) * 2.0,
            lambda: self.pick(tf.reduce_sum, tf.reduce_max, tf.reduce_mean)(matrix, axis, keepdims=keep),
            lambda: tf.reduce_sum(x * x),
            lambda: tf.nn.softmax(matrix),
            lambda: tf.where(x > 0.0, x, tf.zeros_like(x)),
            lambda: tf.cast(tf.fill([tf.shape(vector)[0]], 2.0), tf.float64) * self.any(1),
            lambda: tf.gradients(tf.reduce_sum(tf.tanh(x) * y), [x])[0] if x is not y else x,
            lambda: tf.expand_dims(vector, self.pick(0, 1)) * matrix,
            lambda: tf.concat([vector, self.any(1)], 0) * 2.0,
        )()


@pytest.mark.parametrize("start", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(100, 900, 100))])
def test_programs_whose_regions_are_compiled(start):
    pytest.importorskip("llvmlite")
    fits = regions = 0
    for seed in range(start, start + (1 if start == 0 else 30)):
        with tf.Graph().as_default() as graph:
            program = Fusible(seed)
        places, rng = list(program.places), program.rng
        for fetch in program.pool[-1:4:-4]:
            lab, feeds = Lab(graph, [fetch], backends=("llvm", "cpu")), dict(program.places)
            for _ in range(6):
                fits += lab.compare(feeds, seed, words=False, pruned=True)
                sizes = resized(rng, [program.places[p] for p in places], [p._dims for p in places])
                feeds = dict(zip(places, sizes, strict=True))
            regions += lab.generic.explain([fetch]).kernels().get("llvm.region", 0)
    assert fits and regions
