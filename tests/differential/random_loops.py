"""Random nested conds and loops, and their interpretation by Python's own ``if`` and ``while``.

Values have kinds: ``i`` int32 and ``l`` int64 scalars, ``b`` bool scalars, ``f`` float64 [3], ``m`` float64 [3, 3], ``g`` float64
vectors of any length, and ``u`` float64 matrices of any number of rows, of which a program knows no dim. A script is a list of
lines; each reads values by kind and position and appends one or more. One function, :func:`run`, follows a script twice: over
NumPy values and over tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as tf
import numpy as np

KINDS = "ilbfmgu"
DTYPES = {"i": np.int32, "l": np.int64, "b": np.bool_} | dict.fromkeys("fmgu", np.float64)
SHAPES: dict[str, list[int | None]] = {"i": [], "l": [], "b": [], "f": [3], "m": [3, 3], "g": [None], "u": [None, None]}
#: The sizes of dims that a program does not know, and the axes that are always three.
SIZES, WIDTHS = (0, 1, 1, 2, 4), {("u", 1): 3}


class Cell(tf.nn.rnn_cell.RNNCell):
    """A cell of a weight that the network captures."""

    state_size = output_size = 3

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight

    def call(self, inputs: Any, state: Any) -> Any:
        new = tf.tanh(tf.matmul(inputs, self.weight) + state)
        return new, new


def known(tensor: Any, dims: list[int | None]) -> Any:
    tensor.set_shape(dims)
    return tensor


def lengths_of(rows: int, a: Any) -> list[int]:
    """Lengths of two sequences: none, some, all or more than there are."""
    return [int(a) % (rows + 2), int(a) % 2]


def network(u: Any, a: Any, f: Any, m: Any, which: int) -> Any:
    """Two sequences through a cell: the outputs of the first (0), the last state of both as a sum (1)."""
    state, outputs = np.tile(f, (2, 1)), np.zeros_like(u)
    lengths = lengths_of(len(u), a)
    for t, row in enumerate(u):
        live = np.array([[t < n] for n in lengths])
        new = np.tanh(np.stack([row, -row]) @ m + state)
        outputs[t], state = np.where(live, new, 0.0)[0], np.where(live, new, state)
    return (outputs, state.sum(0))[which]


def network_tensor(u: Any, a: Any, f: Any, m: Any, which: int, padding: float = np.nan) -> Any:
    """The same by dynamic_rnn, with NaN behind the longest sequence."""
    rows = tf.shape(u)[0]
    lengths = tf.stack([a % (rows + 2), a % 2])
    x = tf.stack([u, -u], 1)
    read = tf.maximum(tf.reduce_max(lengths), 1)
    x = known(tf.where(tf.range(rows) < read, x, tf.zeros_like(x) + padding), [None, 2, 3])
    start = tf.stack([f, f])
    outputs, state = tf.nn.dynamic_rnn(Cell(m), x, lengths, initial_state=start, time_major=True)
    return (outputs[:, 0], tf.reduce_sum(state, 0))[which]


def scanned(u: Any, f: Any) -> Any:
    found = []
    for row in u:
        found.append(f := np.tanh(row + f))
    return np.array(found).reshape(-1, 3)


def folded(u: Any, f: Any, m: Any) -> Any:
    for row in u:
        f = np.sin(row + f @ m)
    return f


def rows_known(u: Any) -> Any:
    return known(tf.identity(u), [None, 3])


#: (kinds read, kind made, over NumPy, over tensors)
OPS: list[tuple[str, str, Callable[..., Any], Callable[..., Any]]] = [
    *[
        op
        for k in "il"
        for op in [
            (k * 2, k, lambda a, b: a + b, lambda a, b: a + b),
            (k * 2, k, lambda a, b: a - b, lambda a, b: a - b),
            (k * 2, k, lambda a, b: a * b, lambda a, b: a * b),
            (k, k, lambda a: -a, lambda a: -a),
            (k, k, lambda a: a * a.dtype.type(77777), lambda a: a * 77777),
            (k, k, lambda a: a + a.dtype.type(1), lambda a: a + 1),
            (k, k, lambda a: a // a.dtype.type(3), lambda a: a // 3),
            (k, k, lambda a: a % a.dtype.type(5), lambda a: a % 5),
            (k, k, lambda a: a % a.dtype.type(-7), lambda a: tf.floormod(a, -7)),
            (k, k, np.abs, tf.abs),
            (k, k, np.square, tf.square),
            (k * 2, k, np.minimum, tf.minimum),
            (k * 2, k, np.maximum, tf.maximum),
            (k * 2, "b", lambda a, b: a < b, lambda a, b: a < b),
            (k * 2, "b", lambda a, b: a >= b, lambda a, b: a >= b),
            (k * 2, "b", lambda a, b: a == b, tf.equal),
            (k * 2, "b", lambda a, b: a != b, tf.not_equal),
            ("b" + k + k, k, np.where, tf.where),
            ("b", k, lambda b, k=k: DTYPES[k](b), lambda b, k=k: tf.cast(b, DTYPES[k])),
            (k, "b", lambda a: a != 0, lambda a: tf.cast(a, tf.bool)),
            ("f" + k, "f", lambda f, a: f[a % 3] + f, lambda f, a: tf.gather(f, a % 3) + f),
            ("f" + k, "f", lambda f, a: np.sin(f + np.float64(a)), lambda f, a: tf.sin(f + tf.cast(a, tf.float64))),
            ("m" + k, "f", lambda m, a: m[a % 3], lambda m, a: m[a % 3]),
        ]
    ],
    ("i", "l", lambda a: a.astype(np.int64), lambda a: tf.cast(a, tf.int64)),
    ("l", "i", lambda a: a.astype(np.int32), lambda a: tf.cast(a, tf.int32)),
    ("bb", "b", np.logical_and, tf.logical_and),
    ("bb", "b", np.logical_or, tf.logical_or),
    ("bb", "b", np.logical_xor, tf.logical_xor),
    ("b", "b", np.logical_not, tf.logical_not),
    ("f", "b", lambda f: f[0] > 0.25, lambda f: f[0] > 0.25),
    ("m", "b", lambda m: (m > 0).all(), lambda m: tf.reduce_all(m > 0.0)),
    ("ff", "f", lambda a, b: np.tanh(a + b), lambda a, b: tf.tanh(a + b)),
    ("ff", "f", lambda a, b: a - 0.5 * b, lambda a, b: tf.tanh(a - 0.5 * b) * 0.0 + (a - 0.5 * b)),
    ("ff", "f", np.maximum, tf.maximum),
    ("f", "f", np.sin, tf.sin),
    ("f", "f", lambda a: a[::-1], lambda a: a[::-1]),
    ("f", "f", lambda a: a, tf.identity),
    ("bff", "f", lambda b, x, y: x if b else y, lambda b, x, y: tf.where(tf.fill([3], b), x, y)),
    ("ff", "m", lambda a, b: np.sin(np.outer(a, b)), lambda a, b: tf.sin(a[:, None] * b[None, :])),
    ("fff", "m", lambda *a: np.stack(a), lambda *a: tf.stack(a)),
    ("m", "m", lambda m: m.T, tf.transpose),
    ("mm", "m", lambda a, b: np.tanh(a @ b), lambda a, b: tf.tanh(tf.matmul(a, b))),
    ("mm", "m", lambda a, b: np.sin(a + b), lambda a, b: tf.sin(a + b)),
    ("m", "m", lambda m: m.reshape(9)[::-1].reshape(3, 3), lambda m: tf.reshape(tf.reshape(m, [9])[::-1], [3, 3])),
    ("m", "f", lambda m: m[1], lambda m: tf.unstack(m)[1]),
    ("m", "f", lambda m: np.tanh(m.sum(0)), lambda m: tf.tanh(tf.reduce_sum(m, 0))),
    ("m", "g", lambda m: m.reshape(9), lambda m: tf.reshape(m, [-1])),
    ("gf", "g", lambda g, f: np.concatenate([g, f])[-7:], lambda g, f: tf.concat([g, f], 0)[-7:]),
    ("gg", "g", lambda g, h: np.concatenate([g[:2], h[:2]]), lambda g, h: tf.concat([g[:2], h[:2]], 0)),
    ("g", "g", lambda g: g[1:], lambda g: g[1:]),
    ("g", "g", lambda g: np.cos(g[::-1]), lambda g: tf.cos(g[::-1])),
    ("fg", "f", lambda f, g: f + np.tanh(g.sum()), lambda f, g: f + tf.tanh(tf.reduce_sum(g))),
    ("g", "i", lambda g: np.int32(g.size), tf.size),
    ("f", "g", lambda f: f, tf.identity),
    ("um", "u", lambda u, m: np.tanh(u @ m), lambda u, m: tf.tanh(tf.matmul(u, m))),
    ("um", "u", lambda u, m: np.tanh(u @ m.T), lambda u, m: tf.tanh(tf.matmul(u, m, transpose_b=True))),
    ("uf", "u", lambda u, f: u * f, lambda u, f: u * f),
    ("uu", "u", lambda u, v: np.concatenate([u, v])[-4:], lambda u, v: tf.concat([u, v], 0)[-4:]),
    ("u", "u", lambda u: np.sin(u[1:]), lambda u: tf.sin(u[1:])),
    ("u", "u", lambda u: u[::-1], lambda u: u[::-1]),
    ("ui", "u", lambda u, a: u[: a % 4], lambda u, a: u[: a % 4]),
    ("mi", "u", lambda m, a: m[: a % 4], lambda m, a: m[: a % 4]),
    ("mg", "u", lambda m, g: m[np.flatnonzero(g > 0) % 3], lambda m, g: tf.gather(m, tf.where(g > 0)[:, 0] % 3)),
    (
        "ui",
        "u",
        lambda u, a: u[: a % 4][::-1],
        lambda u, a: tf.gather(u, tf.range(tf.minimum(a % 4, tf.shape(u)[0]))[::-1]),
    ),
    ("ug", "g", lambda u, g: (u * g.sum()).reshape(-1)[:5], lambda u, g: tf.reshape(u * tf.reduce_sum(g), [-1])[:5]),
    ("u", "f", lambda u: np.tanh(u.sum(0)), lambda u: known(tf.tanh(tf.reduce_sum(u, 0)), [3])),
    ("u", "m", lambda u: np.tanh(u.T @ u), lambda u: known(tf.tanh(tf.matmul(u, u, transpose_a=True)), [3, 3])),
    ("u", "i", lambda u: np.int32(len(u)), lambda u: tf.shape(u)[0]),
    ("uf", "u", scanned, lambda u, f: tf.scan(lambda h, row: tf.tanh(row + h), rows_known(u), f)),
    (
        "ufm",
        "f",
        folded,
        lambda u, f, m: tf.foldl(lambda h, row: tf.sin(row + tf.matmul(h[None], m)[0]), rows_known(u), f),
    ),
    (
        "um",
        "u",
        lambda u, m: np.cos(u @ m),
        lambda u, m: tf.map_fn(lambda row: tf.cos(tf.matmul(row[None], m)[0]), rows_known(u)),
    ),
    *[
        ("uifm", kind, lambda *a, n=n: network(*a, which=n), lambda *a, n=n: network_tensor(*a, which=n))
        for n, kind in enumerate("uf")
    ],
]


@dataclass
class Op:
    reads: list[tuple[str, int]]
    makes: str
    index: int


@dataclass
class Constant:
    kind: str
    value: Any


@dataclass
class Choice:
    """``results``: per output its kind, and its position after each branch."""

    predicate: tuple[str, int]
    then: list[Any]
    other: list[Any]
    results: list[tuple[str, int, int]]


@dataclass
class Loop:
    """``variables``: kind, position outside, position after the body. It runs ``times`` times, while ``going`` is true."""

    variables: list[tuple[str, int, int]]
    times: int
    counter: str
    going: tuple[str, int] | None
    condition: list[Any]
    body: list[Any]
    limit: int | None
    invariants: bool


Env = dict[str, list[Any]]
Scope = Callable[[], str | None]


def _copy(env: Env) -> Env:
    return {k: list(v) for k, v in env.items()}


def run(lines: Sequence[Any], env: Env, tensors: Scope | None) -> None:
    """Follow the script, over tensors on the devices that ``tensors`` gives, or over values; ``env`` grows."""
    for line in lines:
        if isinstance(line, Op):
            _, made, numpy, tensor = OPS[line.index]
            values = [env[k][i] for k, i in line.reads]
            if tensors:
                with tf.device(tensors()):
                    env[made].append(tensor(*values))
            else:
                env[made].append(DTYPES[made](numpy(*values)) if made in "ilb" else numpy(*values))
        elif isinstance(line, Constant):
            env[line.kind].append(tf.constant(line.value) if tensors else line.value)
        elif isinstance(line, Choice):
            _choice(line, env, tensors)
        else:
            _loop(line, env, tensors)


def _choice(line: Choice, env: Env, tensors: Scope | None) -> None:
    def branch(script: list[Any], which: int) -> list[Any]:
        inner = _copy(env)
        run(script, inner, tensors)
        return [inner[r[0]][r[which]] for r in line.results]

    kind, at = line.predicate
    if tensors:
        made = tf.cond(env[kind][at], lambda: branch(line.then, 1), lambda: branch(line.other, 2), strict=True)
    else:
        made = branch(line.then, 1) if env[kind][at] else branch(line.other, 2)
    for (k, _, _), value in zip(line.results, made, strict=True):
        env[k].append(value)


def _loop(line: Loop, env: Env, tensors: Scope | None) -> None:
    def inside(variables: Sequence[Any]) -> Env:
        inner = _copy(env)
        for (k, _, _), value in zip(line.variables, variables, strict=True):
            inner[k].append(value)
        return inner

    def going(count: Any, *variables: Any) -> Any:
        if line.going is None:
            return count < line.times
        inner = inside(variables)
        run(line.condition, inner, tensors)
        answer = inner[line.going[0]][line.going[1]]
        return tf.logical_and(count < line.times, answer) if tensors else bool(count < line.times and answer)

    def body(count: Any, *variables: Any) -> list[Any]:
        inner = inside(variables)
        run(line.body, inner, tensors)
        return [count + 1, *(inner[k][after] for k, _, after in line.variables)]

    start = [env[k][i] for k, i, _ in line.variables]
    if tensors:
        dtype = tf.int32 if line.counter == "i" else tf.int64
        invariants = [[], *(SHAPES[k] for k, _, _ in line.variables)] if line.invariants else None
        made = tf.while_loop(
            going, body, [tf.constant(0, dtype), *start], shape_invariants=invariants, maximum_iterations=line.limit
        )
    else:
        made = [0, *start]
        turns = 0
        while going(*made) and (line.limit is None or turns < line.limit):
            made = body(*made)
            turns += 1
    for (k, _, _), value in zip(line.variables, made[1:], strict=True):
        env[k].append(value)


@dataclass
class Loops:
    """A random script over fed values. ``size``: lines per level; ``depth``: how deep bodies nest.

    ``favoured``: kinds that most lines are to read or make, and most loops and conds to hand on. There are twice as many of these,
    and one of them comes first; more loops do not run.
    """

    seed: int
    favoured: str = ""
    lines: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def kind(self) -> str:
        return str(self.pick(self.favoured if self.favoured and self.rng.random() < 0.7 else KINDS))

    def op(self) -> int:
        if not self.favoured or self.rng.random() < 0.3:
            return int(self.rng.integers(len(OPS)))
        kind = self.pick(self.favoured)
        return int(self.pick([i for i, (reads, makes, _, _) in enumerate(OPS) if kind in reads + makes]))

    def value(self, kind: str) -> Any:
        if kind in "il":
            big = self.rng.random() < 0.15
            return DTYPES[kind](self.rng.integers(*((-(2**31), 2**31) if big else (-4, 9))))
        if kind == "b":
            return np.bool_(self.rng.random() < 0.5)
        shape = [
            (WIDTHS.get((kind, axis)) or int(self.pick(SIZES))) if d is None else d
            for axis, d in enumerate(SHAPES[kind])
        ]
        return np.asarray(self.rng.uniform(-1, 1, shape))

    def feeds(self) -> Env:
        """Two values of every kind."""
        return {k: [self.value(k), self.value(k)] for k in KINDS}

    def grow(self, size: int, depth: int) -> None:
        counts = dict.fromkeys(KINDS, 2)
        if self.favoured:
            self.lines.append((self.choice if self.seed % 2 else self.loop)(counts, size, depth - 1))
        self.lines += self.script(counts, size, depth)

    def any(self, counts: dict[str, int], kind: str) -> int:
        """A position, rather a late one."""
        count = counts[kind]
        return int(self.rng.integers(max(0, count - 4) if self.rng.random() < 0.7 else 0, count))

    def script(self, counts: dict[str, int], size: int, depth: int) -> list[Any]:
        lines: list[Any] = []
        for _ in range(int(self.rng.integers(max(1, size // 2), size + 1))):
            kind = self.rng.random() / (2 if self.favoured else 1)
            if depth and kind < 0.13:
                lines.append(self.choice(counts, size, depth - 1))
            elif depth and kind < 0.28:
                lines.append(self.loop(counts, size, depth - 1))
            elif kind < 0.36:
                made = self.pick(KINDS)
                lines.append(Constant(made, self.value(made)))
                counts[made] += 1
            else:
                index = self.op()
                reads, makes, _, _ = OPS[index]
                lines.append(Op([(k, self.any(counts, k)) for k in reads], makes, index))
                counts[makes] += 1
        return lines

    def choice(self, counts: dict[str, int], size: int, depth: int) -> Choice:
        predicate = ("b", self.any(counts, "b"))
        inner = [dict(counts), dict(counts)]
        scripts = [self.script(c, size, depth) if self.rng.random() < 0.85 else [] for c in inner]
        results = []
        for _ in range(int(self.rng.integers(1, 4))):
            k = self.kind()
            results.append((k, self.any(inner[0], k), self.any(inner[1], k)))
        for k, _, _ in results:
            counts[k] += 1
        return Choice(predicate, scripts[0], scripts[1], results)

    def loop(self, counts: dict[str, int], size: int, depth: int) -> Loop:
        kinds = [self.kind() for _ in range(int(self.rng.integers(1, 5)))]
        outside = [self.any(counts, k) for k in kinds]
        inner = dict(counts)
        for k in kinds:
            inner[k] += 1
        condition: list[Any] = []
        going = None
        if self.rng.random() < 0.3:
            test = dict(inner)
            condition = self.script(test, 3, 0)
            going = ("b", self.any(test, "b"))
        before = dict(inner)
        body = self.script(inner, size, depth)
        variables = []
        for k, start in zip(kinds, outside, strict=True):
            swap = self.rng.random() < 0.3  # a loop variable, this one or another, or what was captured
            variables.append((k, start, self.any(before if swap else inner, k)))
        for k in kinds:
            counts[k] += 1
        limit = int(self.rng.integers(0, 3)) if self.rng.random() < 0.2 else None
        times = int(self.pick([0, 0, 1, 2, 3] if self.favoured else [0, 1, 2, 3, 5]))
        invariants = not {"g", "u"}.isdisjoint(kinds) or bool(self.rng.random() < 0.2)
        return Loop(variables, times, self.pick("il"), going, condition, body, limit, invariants)

    def interpret(self, feeds: Env) -> Env:
        env = _copy(feeds)
        with np.errstate(all="ignore"):
            run(self.lines, env, None)
        return env

    def build(self, feeds: Env, scope: Scope | None = None) -> tuple[Env, Env]:
        """(placeholders, all values of the outermost level); ``scope`` says on which device the next op is to run."""
        fed: Env = {k: [tf.placeholder(DTYPES[k], SHAPES[k]) for _ in v] for k, v in feeds.items()}
        env = _copy(fed)
        run(self.lines, env, scope or (lambda: None))
        return fed, env
