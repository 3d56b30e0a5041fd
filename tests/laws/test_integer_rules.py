"""What inference knows of small integers is what a step computes: at construction, in a plan, and in every dtype."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.opdef.shape_values import plan_integers
from graphdock.passes.pipeline import simplifications
from graphdock.planning.translate import translate
from graphdock.plugin.host import default_host

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PLAIN = tf.SessionConfig(passes=dict.fromkeys(simplifications(), False))
GRAPHS, OPS = 90, 40


class Program:
    """A random graph of integer ops, and the values its placeholders are fed with."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.made: list[tf.Tensor] = []
        self.feeds = {}
        for i in range(3):
            shape = self.rng.integers(0, 5, self.rng.integers(0, 4)).tolist()
            static = [None if self.rng.random() < 0.3 else d for d in shape]
            self.feeds[tf.placeholder(tf.float32, static, f"x{i}")] = np.zeros(shape)
        for _ in range(4):
            self.made.append(self.leaf())
        for _ in range(OPS):
            self.made.extend(self.step())

    def pick(self, *items):
        return items[self.rng.integers(len(items))]

    def dtype(self):
        return tf.as_dtype(self.pick(*DTYPES))

    def leaf(self):
        if self.rng.random() < 0.4:
            x = self.pick(*self.feeds)
            out = self.pick(tf.int32, tf.int64)
            return self.pick(
                lambda: tf.ops.apply_op("Shape", input=x, out_type=out),
                lambda: tf.ops.apply_op("Size", input=x, out_type=out),
                lambda: tf.ops.apply_op("Rank", input=x),
            )()
        dtype, shape = self.dtype(), self.rng.integers(0, 5, self.rng.integers(0, 3))
        if self.rng.random() < 0.1:
            return tf.constant(self.rng.random(shape) < 0.5)
        low, high = self.pick((0, 4), (dtype.min, dtype.max))
        return tf.constant(self.rng.integers(low, high, shape, dtype.np, endpoint=True))

    def any(self, *ranks, index=False):
        """A tensor of one of the ranks, made where there is none."""
        fit = [t for t in self.made if t.shape.rank in ranks and t.dtype.is_integer and not index]
        if fit and self.rng.random() < 0.9:
            return self.pick(*fit[-12:])
        dtype = self.pick(tf.int32, tf.int64) if index else self.dtype()
        return tf.constant(self.rng.integers(0, 4, self.rng.integers(1, 4, self.pick(*ranks))), dtype)

    def known(self, length_of):
        """A vector whose length is static."""
        x = self.any(1)
        n = x.shape[0]
        return (x, n) if n is not None else (tf.constant(self.rng.integers(0, 9, length_of), x.dtype), length_of)

    def index(self, value):
        return tf.constant(np.asarray(value, np.int64).tolist(), self.pick(tf.int32, tf.int64))

    def step(self):
        """The outputs of one more op."""
        x, rng = self.any(0, 1, 2), self.rng
        low, (vector, n) = self.any(0, 1), self.known(3)
        first = self.index(self.pick(0, -1))
        apply = tf.ops.apply_op

        def pair(op):
            y = self.any(0, 1)
            if y.shape.rank == low.shape.rank == 1 and (
                None in (y.shape[0], low.shape[0]) or y.shape[0] != low.shape[0]
            ):
                y = tf.constant(rng.integers(0, 3), low.dtype)
            return apply(op, x=low, y=tf.cast(y, low.dtype))

        def strided():
            a, b = (self.index(rng.integers(-n - 2, n + 3, 1)) for _ in range(2))
            a, b = tf.cast(a, tf.int64), tf.cast(b, tf.int64)
            step = tf.constant([self.pick(-2, -1, 1, 2)], tf.int64)
            masks = {m: int(rng.integers(2)) for m in ("begin_mask", "end_mask")}
            if n and rng.random() < 0.3:
                a, masks = tf.constant(rng.integers(-n, n, 1), tf.int64), {"shrink_axis_mask": 1}
            return apply("StridedSlice", x=vector, begin=a, end=b, strides=step, **masks)

        def sliced():
            at = int(rng.integers(0, n + 1))
            size = self.pick(-1, int(rng.integers(0, n - at + 1)))
            return apply("Slice", x=vector, begin=tf.constant([at]), size=tf.constant([size]))

        def rearranged():
            if x.shape.num_elements() is None:
                return tf.reshape(vector, [-1])
            count = x.shape.num_elements()
            targets = [[-1], [count], [1, count]] + ([[]] if count == 1 else []) + ([[-1, 1]] if count else [])
            return apply("Reshape", x=x, shape=tf.constant(self.pick(*targets), tf.int32))

        def filled():
            dims = self.pick([], [3], [2, 2], [0])
            return apply("Fill", dims=self.index(np.array(dims)), value=self.any(0))

        def packed():
            fellow = tf.cast(vector * 2, vector.dtype)
            if rng.random() < 0.5:
                fellow = tf.placeholder_with_default(fellow, None)
            return apply("Pack", values=[vector, fellow, vector], axis=self.pick(0, 1, -1, -2))

        def scalars():
            parts = [tf.cast(self.any(0), low.dtype) for _ in range(rng.integers(1, 4))]
            return apply("Pack", values=parts, axis=self.pick(0, -1))

        def product():
            axis = self.pick(self.index(np.zeros(0)), first, self.index([0]))
            return apply("Prod", x=vector, axis=axis, keep_dims=bool(rng.integers(2)))

        def unpacked():
            return apply("Unpack", value=vector, num=n, axis=self.pick(0, -1))

        def cut():
            count = self.pick(*[d for d in range(1, n + 1) if n % d == 0] or [1])
            return apply("Split", axis=first, value=vector, num_split=count)

        def ranged():
            dtype = self.pick(tf.int32, tf.int64)
            start, limit, size = *rng.integers(-20, 20, 2), self.pick(1, 3, 4)
            bounds = [tf.constant(v, dtype) for v in (start, limit, size if limit >= start else -size)]
            return apply("Range", start=bounds[0], limit=bounds[1], delta=bounds[2])

        def gathered():
            if not n:
                return tf.identity(vector)
            at = self.index(rng.integers(0, n, self.pick((), (2,))))
            return apply("Gather", params=vector, indices=at, axis=first)

        def broadcast():
            out = self.pick(tf.int32, tf.int64)
            shape = apply("Shape", input=self.pick(*self.feeds), out_type=out)
            return apply("BroadcastArgs", s0=shape, s1=tf.constant(self.pick([], [1], [1, 1], [2, 1, 1, 1]), out))

        def sparse():
            places, shape = tf.zeros([0, 2], tf.int64), tf.constant([2, 3], tf.int64)
            new = tf.constant(self.pick([6], [-1], [3, -1], [1, 2, 3]), tf.int64)
            return [apply("SparseReshape", input_indices=places, input_shape=shape, new_shape=new)[1]]

        made = self.pick(
            *[lambda op=op: pair(op) for op in ("Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Minimum", "Maximum")],
            lambda: tf.cast(x, self.dtype()),
            lambda: apply("Cast", x=x, DstT=tf.bool),
            lambda: apply("Cast", x=apply("Cast", x=x, DstT=tf.bool), DstT=self.dtype()),
            lambda: tf.identity(x),
            lambda: tf.stop_gradient(x),
            lambda: list(apply("IdentityN", input=[x, low])),
            lambda: apply("ExpandDims", x=low, axis=self.index(self.pick(0, -1))),
            lambda: apply("Squeeze", x=apply("ExpandDims", x=self.any(0), axis=self.index(0)), axis=self.pick([], [0])),
            lambda: apply("ReverseV2", x=vector, axis=self.index(self.pick([0], [-1], np.zeros(0)))),
            lambda: tf.concat([vector, tf.cast(self.known(2)[0], vector.dtype)], int(self.pick(0, -1))),
            strided,
            sliced,
            rearranged,
            filled,
            packed,
            scalars,
            product,
            unpacked,
            cut,
            ranged,
            gathered,
            broadcast,
            sparse,
            self.leaf,
        )()
        return made if isinstance(made, list) else [made]


def agree(known, want, what):
    """Whether every element that is known is the computed one; returns how many are."""
    if known is None:
        return 0
    if isinstance(known, tuple):
        assert want.ndim and len(known) == len(want), what
        return sum(agree(k, w, what) for k, w in zip(known, want, strict=True))
    assert want.shape == () and type(known) is int and known == int(want), (what, known, want)
    return 1


@pytest.mark.slow
def test_every_rule_knows_what_a_step_computes_in_every_dtype():
    cases, known, seen = 0, 0, set()
    for seed in range(GRAPHS):
        with tf.Graph().as_default() as graph:
            program = Program(seed)
            tensors = program.made
            with tf.Session(config=PLAIN) as plain, tf.Session() as session:
                wants = plain.run(tensors, program.feeds)
                gots = session.run(tensors, program.feeds)
            values = translate(tensors, [], [(t, v.shape) for t, v in program.feeds.items()]).outputs
            integers = plan_integers()
            for tensor, value, want, got in zip(tensors, values, wants, gots, strict=True):
                what = (seed, tensor.name, tensor.op.type, tensor.dtype.name)
                assert want.dtype == got.dtype and np.array_equal(want, got), what
                at_construction = agree(graph._known(tensor), want, what)
                in_plan = agree(integers.value(value), want, what)
                assert in_plan == want.size or want.ndim > 1 or tensor.op.type in ("Reshape", "Squeeze"), what
                assert at_construction <= in_plan
                cases, known = cases + 1, known + at_construction
                seen.add((tensor.op.type, tensor.dtype.name))
    assert cases > 3000 and known > 3000
    ops = default_host().ops
    ruled = {name for name in ops.names() if ops.get(name).evaluate is not None}
    assert {op for op, _ in seen} == ruled
    narrow = {"Range", "Size", "Shape", "Rank", "BroadcastArgs", "SparseReshape"}  # these make int32 and int64 only
    assert {(op, d) for op in ruled - narrow for d in DTYPES} <= seen
