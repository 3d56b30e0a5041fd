"""Random loops that read and write TensorArrays, as programs, and in NumPy, where what can't be raises LookupError."""

from __future__ import annotations

import graphdock as tf
import numpy as np

WIDTH = 3


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


class Program:
    """One loop: it reads an element of some arrays and writes one of another, at indices that its counter makes.

    ``likely``: how many draws out of four make a loop that is no error.
    """

    def __init__(self, seed: int, likely: int = 3) -> None:
        draw = np.random.default_rng(seed)
        sound = draw.integers(4) < likely
        self.count = int(draw.choice([0, 1, 2, 5, 9]))
        self.known = str(draw.choice(["number", "fed", "rows"]))
        self.start = int(draw.choice([0, 0, 0, 1, 2]))
        self.down = bool(draw.integers(4) == 0)
        self.reads = int(draw.integers(3))
        self.turned = [bool(draw.integers(3) == 0) for _ in range(3)]
        self.more = [int(draw.integers(2)) if sound else int(draw.integers(-2, 3)) for _ in range(3)]
        self.shift = 0 if sound else int(draw.choice([0, 0, -1, 1, 2]))
        self.grows = bool(draw.integers(5) == 0)
        self.forgets = bool(draw.integers(3))
        self.stops = bool(draw.integers(4) == 0)
        self.first = bool(self.start and draw.integers(2))
        self.after = str(draw.choice(["stack", "stack", "gather", "read", "concat"]))
        self.around = str(draw.choice(["nothing", "nothing", "loop", "branch"]))
        self.passed = bool(draw.integers(3) == 0)
        self.draw = draw

    @property
    def end(self):
        return self.start + self.count

    def index(self, i, which, end):
        """Where it reads (0, 1) or writes (2), in the iteration of counter ``i``."""
        return (end - 1 - i + self.start if self.turned[which] else i) + (self.shift if which == 2 else 0)

    def build(self):
        """Fetches and what is fed: results of the loop, and their gradients."""
        rows = [tf.placeholder(tf.float32, self._rows(k)) for k in range(self.reads)]
        h = tf.placeholder(tf.float32, [WIDTH])
        fed = {r: numbers(max(self.end + self.more[k], 0), WIDTH, seed=k) for k, r in enumerate(rows)}
        fed[h] = numbers(WIDTH, seed=7)
        end = self.end
        if self.known == "fed":
            end = tf.placeholder(tf.int32, [])
            fed[end] = self.end
        elif self.known == "rows" and rows:
            end = tf.shape(rows[0])[0] - self.more[0]
        if self.around == "loop":

            def twice(k, v):
                v, y = self._loop(rows, v, end)
                return k + 1, tf.tanh(v + tf.reduce_sum(y, 0))

            v = tf.while_loop(lambda k, _: k < 2, twice, [0, h])[1]
            results = v, v
        elif self.around == "branch":
            results = tf.cond(tf.reduce_sum(h) < 1e3, lambda: self._loop(rows, h, end), lambda: (h, self._zeros(end)))
        else:
            results = self._loop(rows, h, end)
        total = tf.reduce_sum(results[0] * results[0]) + tf.reduce_sum(results[1] * results[1])
        grads = [g for g in tf.gradients(total, [*rows, h]) if g is not None]
        return [*results, *grads], fed

    def _rows(self, k):
        known = self.known != "rows"
        return [max(self.end + self.more[k], 0) if known else None, WIDTH]

    def _zeros(self, end):
        return tf.zeros([end, WIDTH]) if self.after == "stack" else tf.zeros([1, WIDTH])

    def _loop(self, rows, h, end):
        flags = {} if self.forgets else {"clear_after_read": False}
        arrays = [tf.TensorArray(tf.float32, end + self.more[k], **flags).unstack(r) for k, r in enumerate(rows)]
        size = end + self.more[2]
        out = tf.TensorArray(tf.float32, size, dynamic_size=self.grows, element_shape=[WIDTH], **flags)
        if self.first:
            out = out.write(0, h * 2)
        given = arrays if self.passed else []

        def goes_on(i, v, *_):
            more = i >= self.start if self.down else i < end
            return tf.logical_and(more, tf.reduce_sum(v * v) < 1.5) if self.stops else more

        def body(i, v, o, *passed):
            for k, array in enumerate(passed or arrays):
                v = tf.tanh(v * 0.9 + array.read(self.index(i, k, end)))
            return (i - 1 if self.down else i + 1, v * 1.1, o.write(self.index(i, 2, end), v + 1), *passed)

        begin = end - 1 if self.down else self.start
        _, v, out, *_ = tf.while_loop(goes_on, body, [begin, h, out, *given])
        if self.after == "stack":
            return v, out.stack()
        if self.after == "concat":
            return v, tf.reshape(out.concat(), [-1, WIDTH])
        if self.after == "gather":
            return v, out.gather([1, 0] if self.end > 1 else [0])
        return v, out.read(0)[tf.newaxis]

    def numpy(self, fed):
        """The results. Raises LookupError where an array is read or written where it has no element, or twice."""
        rows = [value for value in fed.values() if np.ndim(value) == 2]
        h = next(value for value in fed.values() if np.shape(value) == (WIDTH,))
        if self.around != "loop":
            return self._numpy_loop(rows, h)
        for _ in range(2):
            v, y = self._numpy_loop(rows, h)
            h = np.tanh(v + y.sum(0))
        return h, h

    def _numpy_loop(self, rows, h):
        v, end = h, self.end
        sizes = [end + m for m in self.more]
        if min([*sizes[: self.reads], sizes[2]]) < 0:
            raise LookupError("a size")
        out = {0: h * 2} if self.first else {}
        if self.first and not sizes[2] and not self.grows:
            raise LookupError("a size")
        count = max(sizes[2], 1 if self.first else 0)
        for i in range(end - 1, self.start - 1, -1) if self.down else range(self.start, end):
            if self.stops and not (v * v).sum() < 1.5:
                break
            for k in range(self.reads):
                at = self.index(i, k, end)
                if not 0 <= at < sizes[k]:
                    raise LookupError("a read")
                v = np.tanh(v * np.float32(0.9) + rows[k][at])
            at = self.index(i, 2, end)
            if at < 0 or at >= sizes[2] and not self.grows or at in out:
                raise LookupError("a write")
            out[at], v = v + 1, v * np.float32(1.1)
            count = max(count, at + 1)
        whole = (
            np.stack([out.get(i, np.zeros(WIDTH, np.float32)) for i in range(count)]) if count else np.zeros((0, WIDTH))
        )
        if self.after in ("stack", "concat"):
            return v, whole
        asked = ([1, 0] if end > 1 else [0]) if self.after == "gather" else [0]
        if max(asked) >= count:
            raise LookupError("a read behind the loop")
        return v, whole[asked]


def outcome(fetches, fed, **fields):
    """What a step gives, or the kind and text of its error."""
    with tf.Session(config=tf.SessionConfig(**fields)) as sess:
        try:
            return sess.run(fetches, fed)
        except tf.errors.OpError as error:
            return type(error).__name__, error.message


def agree(got, want, near=1e-4):
    """Both are the same errors, or results that differ by rounding."""
    if isinstance(want, tuple) or isinstance(got, tuple):
        assert got == want
        return
    for one, other in zip(got, want, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, near, near)


CPU = {"backends": ("cpu",)}
LISTS = {**CPU, "passes": {"lists": False}}


def plan_of(fetches, feed):
    """Ops of all levels, and what the pass says."""
    with tf.Session(config=tf.SessionConfig(**CPU)) as sess:
        explained = sess.explain(fetches, feed)
    ops = {n.op for level in explained.plan.graph.all_graphs() for n in level.nodes}
    return ops, [line for line in str(explained).splitlines() if line.startswith("pass lists")]


def array(size, **fields):
    return tf.TensorArray(tf.float32, size=size, **fields)


def squares(change, size=5, count=5, **fields):
    """A loop that writes; ``change`` makes the array of an iteration."""
    x = tf.placeholder(tf.float32, [3])
    loop = tf.while_loop(
        lambda i, *_: i < count, lambda i, v, o: (i + 1, v * 1.5, change(i, v, o)), [0, x, array(size, **fields)]
    )
    return [loop[2].stack(), loop[1]], {x: numbers(3)}
