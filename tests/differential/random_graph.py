"""Random programs of standard ops, and a plain NumPy interpreter of them that shares no code with graphdock's kernels.

A :class:`Program` is a list of steps; each holds two functions, one over NumPy arrays and one over tensors. ``evaluate`` is the
interpreter, ``build`` makes the graph. Values are numbered; a step may have several outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as tf
import numpy as np

FLOATS = ("float64", "float32")
INTS = ("int32", "int64")


@dataclass
class Step:
    inputs: list[int]
    numpy: Callable[..., Any]
    tensor: Callable[..., Any]
    outputs: list[int]
    what: str


@dataclass
class Program:
    """``feeds``: value number -> the array to feed. ``values``: what the interpreter found for every number."""

    seed: int
    steps: list[Step] = field(default_factory=list)
    feeds: dict[int, np.ndarray] = field(default_factory=dict)
    values: dict[int, np.ndarray] = field(default_factory=dict)

    def evaluate(self, feeds: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Every value, given these; a step whose outputs are all given does not run."""
        values = dict(feeds)
        with np.errstate(all="ignore"):
            for step in self.steps:
                if all(o in feeds for o in step.outputs):
                    continue
                made = step.numpy(*[values[i] for i in step.inputs])
                for number, array in zip(step.outputs, made if isinstance(made, list) else [made], strict=True):
                    values.setdefault(number, np.asarray(array))
        return values

    def build(
        self,
        unknown: Callable[[int], Any] = lambda i: None,
        scope: Callable[[int], Any] | None = None,
        use: Callable[[Any], Any] = lambda t: t,
    ) -> dict[int, Any]:
        """The tensors.

        Args:
          unknown: number of a feed -> how its shape is declared: None whole, ``dims`` unknown dims, ``rank``.
          use: makes what a step reads of a tensor; called once for each operand.
        """
        tensors: dict[int, Any] = {}
        for number, array in self.feeds.items():
            how = unknown(number)
            shape: Any = list(array.shape)
            if how == "dims":
                shape = [None] * array.ndim
            elif how == "rank":
                shape = None
            tensors[number] = tf.placeholder(str(array.dtype), shape, name=f"x{number}")
        for index, step in enumerate(self.steps):
            with tf.device(scope(index) if scope is not None else None):
                made = step.tensor(*[use(tensors[i]) for i in step.inputs])
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            tensors.update(zip(step.outputs, made, strict=True))
        return tensors

    def listing(self) -> str:
        lines = [f"seed {self.seed}"]
        lines += [f"v{i} = feed {a.dtype}{list(a.shape)}" for i, a in self.feeds.items()]
        for step in self.steps:
            shapes = [f"{self.values[o].dtype}{list(self.values[o].shape)}" for o in step.outputs]
            lines.append(f"{[f'v{o}' for o in step.outputs]} = {step.what} {step.inputs} -> {shapes}")
        return "\n".join(lines)


class Generator:
    """Grows a program; every choice comes from the seed."""

    def __init__(self, seed: int, feeds: int = 3) -> None:
        self.rng = np.random.default_rng(seed)
        self.program = Program(seed)
        for _ in range(feeds):
            number = self.new(self.array(self.pick([*FLOATS, *INTS]), self.shape()))
            self.program.feeds[number] = self.program.values[number]

    # -- choices

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def shape(self) -> tuple[int, ...]:
        rank = self.pick([0, 1, 1, 2, 2, 2, 3])
        return tuple(self.pick([1, 2, 3, 4, 4, 0] if self.chance(0.04) else [1, 2, 3, 4]) for _ in range(rank))

    def array(self, dtype: str, shape: Sequence[int]) -> np.ndarray:
        if dtype == "bool":
            return np.asarray(self.rng.random(tuple(shape)) < 0.5)
        if dtype in INTS:
            low = -(2**31) if self.chance(0.2) else -5
            return np.asarray(self.rng.integers(low, -low, tuple(shape)), dtype)
        return np.asarray(self.rng.uniform(-2, 2, tuple(shape)), dtype)

    def new(self, array: Any) -> int:
        number = len(self.program.values)
        self.program.values[number] = np.asarray(array)
        return number

    def some(self, test: Callable[[np.ndarray], bool] = lambda a: True, last: int = 12) -> int | None:
        """The number of a value that passes the test, rather a late one."""
        fits = [i for i, a in self.program.values.items() if test(a)]
        if not fits:
            return None
        return self.pick(fits[-last:] if self.chance(0.7) else fits)

    def like(self, number: int) -> int | None:
        """Another value of its dtype whose shape broadcasts with it."""
        a = self.program.values[number]

        def fits(b: np.ndarray) -> bool:
            if a.dtype != b.dtype:
                return False
            try:
                return int(np.prod(np.broadcast_shapes(a.shape, b.shape))) <= 400
            except ValueError:
                return False

        return self.some(fits)

    # -- growing

    def add(self, what: str, inputs: Sequence[int], numpy: Callable[..., Any], tensor: Callable[..., Any]) -> None:
        values = self.program.values
        with np.errstate(all="ignore"):
            made = numpy(*[values[i] for i in inputs])
        arrays = made if isinstance(made, list) else [made]
        if not arrays or any(np.asarray(a).size > 2000 for a in arrays):
            return
        outputs = [self.new(a) for a in arrays]
        self.program.steps.append(Step(list(inputs), numpy, tensor, outputs, what))
        for number in outputs:
            array = values[number]
            if array.dtype.kind == "f" and array.size and np.abs(array).max() > 100:
                self.add("tanh", [number], np.tanh, tf.tanh)

    def makers(self) -> Sequence[Callable[[], None]]:
        return [self.unary, self.binary, self.binary, self.view, self.view, self.reduce, self.combine, self.choose,
                self.index, self.matmul, self.constant, self.cast, self.several, self.same]  # fmt: skip

    def grow(self, count: int) -> Program:
        makers = self.makers()
        while len(self.program.steps) < count:
            self.pick(makers)()
        return self.program

    def constant(self) -> None:
        array = self.array(self.pick([*FLOATS, *INTS, "bool"]), self.shape())
        self.add(f"const {array.dtype}{list(array.shape)}", [], lambda: array, lambda: tf.constant(array))

    def unary(self) -> None:
        n = self.some()
        assert n is not None
        kind = self.program.values[n].dtype.kind
        table: dict[str, list[tuple[str, Any, Any]]] = {
            "f": [
                ("neg", np.negative, tf.negative), ("abs", np.abs, tf.abs), ("tanh", np.tanh, tf.tanh),
                ("sin", np.sin, tf.sin), ("square", lambda x: x * x, tf.square),
                ("exp(-abs)", lambda x: np.exp(-np.abs(x)), lambda x: tf.exp(-tf.abs(x))),
                ("sqrt(abs)", lambda x: np.sqrt(np.abs(x)), lambda x: tf.sqrt(tf.abs(x))),
                ("relu", lambda x: np.maximum(x, 0), tf.nn.relu),
                ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), tf.sigmoid),
            ],
            "i": [
                ("neg", np.negative, tf.negative), ("abs", np.abs, tf.abs), ("square", lambda x: x * x, tf.square),
                ("x // 3", lambda x: x // x.dtype.type(3), lambda x: x // 3),
                ("x % 5", lambda x: x % x.dtype.type(5), lambda x: x % 5),
            ],
            "b": [("not", np.logical_not, tf.logical_not)],
        }  # fmt: skip
        what, f, g = self.pick(table[kind])
        self.add(what, [n], f, g)

    def binary(self) -> None:
        n = self.some()
        assert n is not None
        m = self.like(n)
        if m is None:
            return
        if self.chance(0.5):
            n, m = m, n
        kind = self.program.values[n].dtype.kind
        arithmetic: list[tuple[str, Any, Any]] = [
            ("add", np.add, tf.add), ("sub", np.subtract, tf.subtract), ("mul", np.multiply, tf.multiply),
            ("max", np.maximum, tf.maximum), ("min", np.minimum, tf.minimum),
        ]  # fmt: skip
        table: dict[str, list[tuple[str, Any, Any]]] = {
            "f": [
                *arithmetic,
                ("x / (1 + |y|)", lambda x, y: x / (x.dtype.type(1) + np.abs(y)), lambda x, y: x / (1 + tf.abs(y))),
                ("squared_difference", lambda x, y: np.square(x - y), tf.squared_difference),
            ],
            "i": [
                *arithmetic,
                ("less", np.less, tf.less), ("equal", np.equal, tf.equal), ("ge", np.greater_equal, tf.greater_equal),
            ],
            "b": [
                ("and", np.logical_and, tf.logical_and), ("or", np.logical_or, tf.logical_or),
                ("xor", np.logical_xor, tf.logical_xor),
            ],
        }  # fmt: skip
        what, f, g = self.pick(table[kind])
        self.add(what, [n, m], f, g)

    def same(self) -> None:
        """What passes like to remove: identities, neutral elements, the same node twice."""
        n = self.some(lambda a: a.dtype.kind == "f" and a.size > 0)
        if n is None:
            return
        one = self.program.values[n].dtype.type(1)
        what, f, g = self.pick([
            ("identity", lambda x: x, tf.identity),
            ("x * 1", lambda x: x * one, lambda x: x * 1.0),
            ("x / 1", lambda x: x / one, lambda x: x / 1.0),
            ("stop_gradient", lambda x: x, tf.stop_gradient),
            ("same shape", lambda x: x, lambda x: tf.reshape(x, tf.shape(x))),
            ("(x + x) twice", lambda x: (x + x) - (x + x), lambda x: (x + x) - (x + x)),
            ("zeros_like", np.zeros_like, tf.zeros_like), ("ones_like", np.ones_like, tf.ones_like),
            ("add_n", lambda x: x + x + x, lambda x: tf.add_n([x, x, x])),
        ])  # fmt: skip
        self.add(what, [n], f, g)

    def view(self) -> None:
        n = self.some()
        assert n is not None
        x = self.program.values[n]
        kind = self.pick(
            ["reshape", "transpose", "slice", "stride", "split", "unstack", "expand", "squeeze", "newaxis"]
        )
        if kind == "reshape":
            shape = self.factor(x.size)
            asked = list(shape)
            if x.size and self.chance(0.5):
                asked[int(self.rng.integers(len(asked)))] = -1
            self.add(f"reshape {asked}", [n], lambda a: a.reshape(shape), lambda t: tf.reshape(t, asked))
        elif kind == "transpose":
            if self.chance(0.3):
                self.add("transpose", [n], lambda a: a.T, tf.transpose)
            else:
                perm = [int(i) for i in self.rng.permutation(x.ndim)]
                self.add(f"transpose {perm}", [n], lambda a: a.transpose(perm), lambda t: tf.transpose(t, perm))
        elif kind == "slice" and x.ndim:
            begin = [int(self.rng.integers(d + 1)) for d in x.shape]
            length = [int(self.rng.integers(0 if self.chance(0.1) else 1, d - b + 1)) if d > b else 0
                      for b, d in zip(begin, x.shape, strict=True)]  # fmt: skip
            cut = tuple(slice(b, b + s) for b, s in zip(begin, length, strict=True))
            self.add(f"slice {begin} {length}", [n], lambda a: a[cut], lambda t: tf.slice(t, begin, length))
        elif kind == "stride" and x.ndim:
            index: list[Any] = []
            for d in x.shape:
                choice = self.pick(["all", "step", "back", "one", "range"])
                if choice == "one" and d:
                    index.append(int(self.rng.integers(-d, d)))
                elif choice == "step":
                    index.append(slice(None, None, 2))
                elif choice == "back":
                    index.append(slice(None, None, -1))
                elif choice == "range":
                    index.append(slice(int(self.rng.integers(-3, 3)), None))
                else:
                    index.append(slice(None))
            if self.chance(0.2):
                index.insert(int(self.rng.integers(len(index) + 1)), None)
            key = tuple(index)
            self.add(f"x[{key}]", [n], lambda a: a[key], lambda t: t[key])
        elif kind == "split" and x.ndim:
            axis = int(self.rng.integers(x.ndim))
            size = x.shape[axis]
            if size == 0:
                return
            if self.chance(0.5):
                parts = self.pick([p for p in range(1, size + 1) if size % p == 0])
                self.add(f"split {parts} {axis}", [n], lambda a: np.split(a, parts, axis),
                         lambda t: tf.split(t, parts, axis))  # fmt: skip
            else:
                cut = int(self.rng.integers(size + 1))
                sizes = [cut, size - cut]
                self.add(f"split {sizes} {axis}", [n], lambda a: np.split(a, [cut], axis),
                         lambda t: tf.split(t, sizes, axis))  # fmt: skip
        elif kind == "unstack" and x.ndim:
            axis = int(self.rng.integers(-x.ndim, x.ndim))
            size = x.shape[axis]
            if 1 <= size <= 4:
                self.add(f"unstack {axis}", [n], lambda a: [a.take(i, axis) for i in range(size)],
                         lambda t: tf.unstack(t, size, axis))  # fmt: skip
        elif kind in ("expand", "newaxis") and x.ndim < 5:
            axis = int(self.rng.integers(-x.ndim - 1, x.ndim + 1))
            self.add(f"expand_dims {axis}", [n], lambda a: np.expand_dims(a, axis), lambda t: tf.expand_dims(t, axis))
        elif kind == "squeeze":
            ones = [i for i, d in enumerate(x.shape) if d == 1]
            if ones:
                axis = self.pick(ones)
                self.add(f"squeeze {axis}", [n], lambda a: np.squeeze(a, axis), lambda t: tf.squeeze(t, [axis]))

    def factor(self, size: int) -> list[int]:
        if size == 0:
            return [0, self.pick([1, 2, 3])]
        dims = []
        rest = size
        while rest > 1 and len(dims) < 3 and self.chance(0.7):
            d = self.pick([f for f in range(1, rest + 1) if rest % f == 0])
            dims.append(d)
            rest //= d
        return [*dims, rest]

    def reduce(self) -> None:
        n = self.some(lambda a: a.size > 0)
        if n is None:
            return
        x = self.program.values[n]
        axes: Any = None
        if x.ndim and self.chance(0.8):
            axes = tuple(sorted({int(self.rng.integers(x.ndim)) for _ in range(self.pick([1, 1, 2]))}))
        asked = None if axes is None else list(axes) if len(axes) > 1 else axes[0]
        keep = self.chance(0.4)
        dtype = x.dtype
        if dtype.kind == "b":
            what, f, g = self.pick([("all", np.all, tf.reduce_all), ("any", np.any, tf.reduce_any)])
        else:
            options: list[tuple[str, Any, Any]] = [
                ("sum", lambda a, **k: np.sum(a, dtype=dtype, **k), tf.reduce_sum),
                ("max", np.max, tf.reduce_max), ("min", np.min, tf.reduce_min),
            ]  # fmt: skip
            if dtype.kind == "f":
                options.append(("mean", np.mean, tf.reduce_mean))
            what, f, g = self.pick(options)
        self.add(f"reduce_{what} {asked} {keep}", [n], lambda a: f(a, axis=axes, keepdims=keep),
                 lambda t: g(t, asked, keep))  # fmt: skip

    def combine(self) -> None:
        n = self.some(lambda a: a.ndim > 0)
        if n is None:
            return
        x = self.program.values[n]
        kind = self.pick(["concat", "stack", "tile", "pad", "reverse"])
        axis = int(self.rng.integers(x.ndim))
        if kind in ("concat", "stack"):

            def fits(b: np.ndarray) -> bool:
                if b.dtype != x.dtype or b.ndim != x.ndim:
                    return False
                same = [p == q for p, q in zip(x.shape, b.shape, strict=True)]
                return all(same) if kind == "stack" else all(s for i, s in enumerate(same) if i != axis)

            others = [m for m in (self.some(fits) for _ in range(self.pick([1, 1, 2]))) if m is not None]
            inputs = [n, *others]
            if kind == "concat":
                self.add(f"concat {axis}", inputs, lambda *a: np.concatenate(a, axis),
                         lambda *t: tf.concat(list(t), axis))  # fmt: skip
            elif x.ndim < 5:
                self.add(f"stack {axis}", inputs, lambda *a: np.stack(a, axis), lambda *t: tf.stack(list(t), axis))
        elif kind == "tile":
            times = [self.pick([1, 1, 2]) for _ in x.shape]
            self.add(f"tile {times}", [n], lambda a: np.tile(a, times), lambda t: tf.tile(t, times))
        elif kind == "pad":
            pads = [[self.pick([0, 1]), self.pick([0, 0, 2])] for _ in x.shape]
            self.add(f"pad {pads}", [n], lambda a: np.pad(a, pads), lambda t: tf.pad(t, pads))
        else:
            self.add(f"reverse {axis}", [n], lambda a: np.flip(a, axis), lambda t: tf.reverse(t, [axis]))

    def choose(self) -> None:
        c = self.some(lambda a: a.dtype.kind == "b")
        if c is None:
            return
        shape = self.program.values[c].shape
        n = self.some(lambda a: a.shape == shape)
        assert n is not None
        m = self.some(lambda a: a.shape == shape and a.dtype == self.program.values[n].dtype)
        assert m is not None
        self.add("where", [c, n, m], np.where, tf.where)

    def index(self) -> None:
        n = self.some(lambda a: a.ndim > 0 and 0 not in a.shape)
        if n is None:
            return
        x = self.program.values[n]
        kind = self.pick(["gather", "argmax", "one_hot", "cumsum"])
        axis = int(self.rng.integers(x.ndim))
        if kind == "gather":
            which = self.array("int32", self.pick([(), (2,), (2, 2)])) % x.shape[axis]
            self.add(f"gather {which.tolist()} {axis}", [n], lambda a: a.take(which, axis),
                     lambda t: tf.gather(t, which, axis=axis))  # fmt: skip
        elif kind == "argmax" and x.dtype.kind == "i":
            self.add(f"argmax {axis}", [n], lambda a: a.argmax(axis).astype(np.int64), lambda t: tf.argmax(t, axis))
        elif kind == "cumsum" and x.dtype.kind == "i":
            self.add(f"cumsum {axis}", [n], lambda a: a.cumsum(axis, dtype=a.dtype), lambda t: tf.cumsum(t, axis))
        elif kind == "one_hot" and x.dtype.kind == "i" and x.ndim < 3:
            self.add("one_hot", [n], lambda a: (a[..., None] == np.arange(3)).astype(np.float32),
                     lambda t: tf.one_hot(t, 3))  # fmt: skip

    def matmul(self) -> None:
        n = self.some(lambda a: a.ndim == 2 and a.dtype.kind == "f")
        if n is None:
            return
        x = self.program.values[n]
        ta, tb = self.chance(0.3), self.chance(0.3)
        inner = x.shape[0] if ta else x.shape[1]
        m = self.some(lambda b: b.ndim == 2 and b.dtype == x.dtype and b.shape[1 if tb else 0] == inner)
        if m is None:
            return
        self.add(f"matmul {ta} {tb}", [n, m], lambda a, b: (a.T if ta else a) @ (b.T if tb else b),
                 lambda a, b: tf.matmul(a, b, transpose_a=ta, transpose_b=tb))  # fmt: skip

    def cast(self) -> None:
        n = self.some(lambda a: a.dtype.kind != "f")
        if n is None:
            return
        to = self.pick([d for d in (*FLOATS, *INTS) if d != self.program.values[n].dtype])
        if to in FLOATS and self.program.values[n].dtype.kind == "i":
            self.add(f"cast {to}", [n], lambda a: np.sin(a.astype(to)), lambda t: tf.sin(tf.cast(t, to)))
        else:
            self.add(f"cast {to}", [n], lambda a: a.astype(to), lambda t: tf.cast(t, to))

    def several(self) -> None:
        """Ops with several outputs, and shapes as values."""
        n = self.some(lambda a: a.ndim > 0)
        if n is None:
            return
        kind = self.pick(["shape", "size", "rank", "shape arithmetic", "identity_n"])
        if kind == "shape":
            self.add("shape", [n], lambda a: np.array(a.shape, np.int32), tf.shape)
        elif kind == "size":
            self.add("size", [n], lambda a: np.array(a.size, np.int32), tf.size)
        elif kind == "rank":
            self.add("rank", [n], lambda a: np.array(a.ndim, np.int32), tf.rank)
        elif kind == "shape arithmetic":
            self.add("reshape by shape", [n], lambda a: a.reshape(a.shape[0], -1) if a.size else a.reshape(a.shape[0], 0),
                     lambda t: tf.reshape(t, tf.stack([tf.shape(t)[0], tf.size(t) // tf.maximum(tf.shape(t)[0], 1)])))  # fmt: skip
        else:
            m = self.some()
            assert m is not None
            self.add("identity_n", [n, m], lambda a, b: [a, b], lambda a, b: tf.identity_n([a, b]))


def assert_close(got: Any, expected: np.ndarray, what: str) -> None:
    """Equal dtype, shape and elements; floats within what another order of summation makes of a hundred operations."""
    got = np.asarray(got)
    assert got.dtype == expected.dtype, f"{what}: dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if expected.dtype.kind == "f":
        tolerance = 1e-9 if expected.dtype == np.float64 else 2e-3
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=what)
