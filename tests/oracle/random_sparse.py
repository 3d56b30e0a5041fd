"""Random programs over sparse tensors whose shapes are known, in part or not at all. It imports nothing of graphdock's."""

from __future__ import annotations

import numpy as np

OPS = ("times", "divided", "add", "add_dense", "concat", "slice", "split", "reshape", "transpose", "reduce", "maximum", "minimum",
       "reset", "retain", "fill", "softmax", "matmul")  # fmt: skip


class Program:
    """A sparse tensor and what was made of it. ``feeds``: what is fed; ``more``: dense tensors on the way."""

    def __init__(self, tf, seed):
        self.tf, self.random = tf, np.random.RandomState(seed)
        self.feeds, self.more = {}, []
        self.shape = [int(n) for n in self.random.randint(1, 5, self.random.randint(1, 4))]
        self.sparse = self.fed(self.shape)
        for _ in range(self.random.randint(1, 4)):
            getattr(self, OPS[self.random.randint(len(OPS))])()

    def chance(self, p):
        return bool(self.random.rand() < p)

    def fed(self, shape):
        """A placeholder of some elements, in row-major order."""
        size = int(np.prod(shape))
        places = np.sort(self.random.permutation(size)[: self.random.randint(0, size + 1)])
        indices = np.stack(np.unravel_index(places, shape), 1).astype(np.int64)
        values = self.random.randint(-3, 4, len(places)).astype(np.float32)
        known = [None, list(shape), [None if self.chance(0.5) else n for n in shape]][self.random.randint(3)]
        made = self.tf.sparse_placeholder(self.tf.float32, shape=known)
        self.feeds[made] = self.tf.SparseTensorValue(indices, values, np.array(shape, np.int64))
        return made

    def dense(self, shape):
        array = self.random.randint(1, 5, shape).astype(np.float32)
        made = self.tf.placeholder(
            self.tf.float32, None if self.chance(0.3) else [None if self.chance(0.3) else n for n in shape]
        )
        self.feeds[made] = array
        return made

    def mostly(self, shape):
        """A shape, now and then another one."""
        return list(shape) if self.chance(0.85) else list(shape)[::-1]

    def stretched(self):
        if self.chance(0.2):
            return [int(n) for n in self.random.randint(1, 4, len(self.shape))]
        return [n if self.chance(0.6) else 1 for n in self.shape][self.random.randint(len(self.shape)) :]

    def times(self):
        self.sparse = self.sparse * self.dense(self.stretched())

    def divided(self):
        self.sparse = self.sparse / self.dense(self.stretched())

    def add(self):
        self.sparse = self.tf.sparse_add(self.sparse, self.fed(self.mostly(self.shape)))

    def add_dense(self):
        self.more.append(self.tf.sparse_add(self.sparse, self.dense(self.mostly(self.shape))))

    def maximum(self):
        self.sparse = self.tf.sparse_maximum(self.sparse, self.fed(self.shape))

    def minimum(self):
        self.sparse = self.tf.sparse_minimum(self.sparse, self.fed(self.shape))

    def concat(self):
        axis, other = int(self.random.randint(-len(self.shape), len(self.shape))), list(self.shape)
        other[axis] = int(self.random.randint(1, 4))
        self.sparse = self.tf.sparse_concat(axis, [self.sparse, self.fed(self.mostly(other))])
        self.shape = list(self.shape)
        self.shape[axis] += other[axis]

    def slice(self):
        starts = [int(self.random.randint(0, n)) for n in self.shape]
        sizes = [int(self.random.randint(1, 4)) for _ in self.shape]
        self.sparse = self.tf.sparse_slice(self.sparse, starts, sizes)
        self.shape = [min(z, n - s) for z, n, s in zip(sizes, self.shape, starts, strict=True)]

    def split(self):
        axis = int(self.random.randint(len(self.shape)))
        count = int(self.random.randint(1, self.shape[axis] + 1))
        parts = self.tf.sparse_split(sp_input=self.sparse, num_split=count, axis=axis)
        self.more += [self.tf.sparse_tensor_to_dense(p) for p in parts[1:]]
        self.sparse, self.shape = parts[0], list(self.shape)
        self.shape[axis] = -(-self.shape[axis] // count)

    def reshape(self):
        size = int(np.prod(self.shape))
        rows = int(self.random.choice([n for n in range(1, size + 1) if size % n == 0]))
        self.sparse = self.tf.sparse_reshape(self.sparse, [rows, -1 if self.chance(0.5) else size // rows])
        self.shape = [rows, size // rows]

    def transpose(self):
        perm = [int(n) for n in self.random.permutation(len(self.shape))]
        self.sparse, self.shape = self.tf.sparse_transpose(self.sparse, perm), [self.shape[p] for p in perm]

    def reduce(self):
        axis = [None, 0, -1][self.random.randint(3)]
        function = self.tf.sparse_reduce_sum if self.chance(0.5) else self.tf.sparse_reduce_max
        self.more.append(function(self.sparse, axis, keep_dims=self.chance(0.5)))

    def reset(self):
        self.shape = [n + int(self.random.randint(0, 2)) for n in self.shape]
        self.sparse = self.tf.sparse_reset_shape(self.sparse, self.shape)

    def retain(self):
        self.sparse = self.tf.sparse_retain(self.sparse, self.sparse.values > 0)

    def fill(self):
        if len(self.shape) == 2:
            self.sparse, empty = self.tf.sparse_fill_empty_rows(self.sparse, 7.0)
            self.more.append(empty)

    def softmax(self):
        if len(self.shape) > 1:
            self.sparse = self.tf.sparse_softmax(self.sparse)

    def matmul(self):
        if len(self.shape) == 2:
            self.more.append(self.tf.sparse_tensor_dense_matmul(self.sparse, self.dense([self.shape[1], 2])))


def answer(tf, seed):
    """Static shapes and values that a framework leaves of a program, or that it refused it."""
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            made = Program(tf, seed)
            last = made.sparse
            fetches = [tf.sparse_tensor_to_dense(last), last.indices, last.values, last.dense_shape, *made.more]
            values = session.run(fetches, made.feeds)
        except (ValueError, TypeError, IndexError, tf.errors.OpError):
            return {"refused": True}
        shapes = [None if f.shape.ndims is None else f.shape.as_list() for f in (*fetches, last)]
        return {"shapes": shapes, "values": values}
