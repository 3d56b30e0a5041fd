"""Random graphs of ops that stand in regions, for ``compiler`` cases: elementwise ones, and of each kind that a compiler asks for.

Graphs of products have what feeds the factors and what follows, of extents that only a step knows as well; graphs of updates write
variables, alone and with the gradient that they take; graphs of parts read tensors cut in pieces, also of unknown dims; in those of
arrangements products share a matrix; in those of gathers indices say which rows are read, and some are out of range; those of
histories have a loop, or loops within loops, and the gradient of it. Every third graph is fed with NaN, infinities and -0 among its
numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.region import RegionCompiler
from graphdock.graph.graph import Graph

from graphdock_testing.bench import Bench

__all__ = ["GRAPHS", "WORDS", "DrawnGraph", "alone", "kinds_of", "random_graph"]

#: Random graphs of each kind. Each eighth of elementwise ones, and of others, has an extent beyond a block.
GRAPHS: Mapping[str, int] = {
    "regions": 24,
    "products": 12,
    "updates": 12,
    "parts": 16,
    "arranged": 12,
    "reductions": 12,
    "loops": 8,
    "histories": 16,
    "unknown_dims": 12,
    "unknown_parts": 16,
    "unknown_products": 16,
    "gathers": 12,
}
_NODES = 14
_UNARY: tuple[Callable[[Any], Any], ...] = (
    *(tf.abs, tf.tanh, tf.sigmoid, tf.negative, tf.square, tf.sin, tf.nn.relu),
    *(lambda x: tf.sqrt(tf.abs(x)), lambda x: tf.exp(tf.minimum(x, 2.0))),
)
#: They jump: of what is fed only, which all see alike.
_STEPS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda a, x, y: tf.where(a > 0.25, x, y * 0.5),
    lambda a, x, y: tf.cast(tf.less(a, 0.5), tf.float32) + x,
    lambda a, x, y: tf.floor(a) * tf.tanh(y),
    lambda a, x, y: tf.cast(tf.cast(a, tf.bfloat16), tf.float32) + tf.tanh(x),
)
_BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    *(tf.add, tf.subtract, tf.maximum, tf.minimum, lambda x, y: tf.tanh(x) * y, lambda x, y: x / (1.0 + y * y)),
    lambda x, y: x * (y * 0.25),
)
#: Of those whose gradient has no edge.
_SMOOTH: tuple[Callable[[Any], Any], ...] = (
    *(tf.tanh, tf.sigmoid, tf.negative, tf.sin, lambda x: tf.square(tf.tanh(x)), lambda x: x * 0.5),
)
_INTEGERS: tuple[Callable[[Any, Any], Any], ...] = (tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum)
_ROWS: tuple[Callable[[Any], Any], ...] = (
    lambda x: tf.reduce_mean(x, -1, keepdims=True),
    lambda x: tf.reduce_max(x, -1, keepdims=True),
    lambda x: tf.reduce_sum(x, 0, keepdims=True) * 0.1,
)
#: What elementwise graphs are made of, and how often one of a kind is drawn.
WORDS: Mapping[str, Sequence[Callable[..., Any]]] = {
    "rows": _ROWS,
    "unary": _UNARY,
    "binary": _BINARY,
    "integers": _INTEGERS,
    "steps": _STEPS,
}
_SHARES = {"rows": 0.2, "unary": 0.3, "binary": 0.3, "integers": 0.1, "steps": 0.1}
_OPTIMIZERS: tuple[Callable[[], Any], ...] = (
    lambda: tf.train.GradientDescentOptimizer(0.1),
    lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    lambda: tf.train.AdamOptimizer(0.01),
    lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
)


@dataclass
class DrawnGraph:
    """A graph, what is run in it, and what a region of it has to hold so that the case says something.

    Attributes:
      fetches: of each step. feeds: by tensor, one table for each step. before: what is run once, first.
      after: what is read when all steps are done.
      holds: whether a region that has an op of this kind is one that was asked for.
      shows: whether a plan whose kernels are of these ops shows that what was asked for has come about.
      any_shape: whether one plan is to serve all steps.
      wrong: feeds of steps that are errors.
    """

    graph: Graph
    fetches: list[Any]
    feeds: list[dict[Any, np.ndarray]]
    before: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    holds: Callable[[OpDef], bool] = lambda _: True
    shows: Callable[[Collection[str]], bool] = lambda _: True
    any_shape: bool = False
    wrong: list[dict[Any, np.ndarray]] = field(default_factory=list)


def kinds_of(compiler: Any) -> list[str]:
    """The kinds of graphs that a region compiler asks for, of :data:`GRAPHS`; ``arranged`` where it has that method."""
    asked = {k: getattr(compiler, k, False) for k in GRAPHS if k != "regions"}
    asked["unknown_parts"] = compiler.parts and compiler.unknown_dims
    asked["unknown_products"] = compiler.products and compiler.unknown_dims
    asked["arranged"] = type(compiler).arranged is not RegionCompiler.arranged
    return ["regions", *(k for k in asked if compiler.programs and asked[k])]


def random_graph(
    bench: Bench, seed: int, compiler: Any, kind: str = "regions", words: Mapping[str, Sequence[Any]] = WORDS
) -> DrawnGraph:
    """A graph on the compiler's device. The same for the same arguments.

    Args:
      kind: one of :data:`GRAPHS`. words: what graphs of ``regions`` are made of.
    """
    rng = np.random.default_rng([seed, 21 + list(GRAPHS).index(kind)])
    graph = Graph(bench.host)
    with graph.as_default(), graph.device(compiler.device_type):
        if kind == "regions":
            drawn = _elementwise(rng, graph, seed, compiler.programs, words)
        elif kind in ("parts", "loops", "histories", "unknown_dims", "unknown_parts"):
            makers = {"parts": _parts, "loops": _loops, "histories": _histories, "unknown_dims": _unknown}
            drawn = (makers | {"unknown_parts": _unknown_parts})[kind](rng, graph, seed, compiler.products)
        else:
            others = {"products": _products, "updates": _updates, "arranged": _shared, "reductions": _reductions}
            others["unknown_products"] = _unknown_products
            others["gathers"] = functools.partial(_gathers, compiler.unknown_dims)
            drawn = others[kind](rng, graph, seed)
    for tensor, array in (item for table in drawn.feeds for item in table.items()):
        if seed % 3 == 2 and tensor.dtype.is_floating:
            places = rng.random(array.shape) < 0.1
            array[places] = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0], np.float32), int(places.sum()))
    return drawn


def _fed(rng: np.random.Generator, *shape: int) -> tuple[Any, np.ndarray]:
    return tf.placeholder(tf.float32, shape), rng.uniform(-2, 2, shape).astype(np.float32)


def _elementwise(
    rng: np.random.Generator, graph: Graph, seed: int, programs: bool, words: Mapping[str, Sequence[Any]]
) -> DrawnGraph:
    shape = (int(rng.integers(2, 6)), 1031 if seed % 8 == 7 else int(rng.integers(2, 9)))
    entered = [tf.placeholder(tf.float32, shape) for _ in range(3)]
    made = [*entered]
    kinds = [k for k, known in words.items() if known and (programs or k != "rows")]
    if programs and "binary" in kinds:
        entered.append(tf.placeholder(tf.float32, shape[1:]))
        made.append(_pick(rng, words["binary"])(made[0], entered[-1]))
    whole = [tf.placeholder(tf.int32, shape) for _ in range(2)]
    integers = [*whole]
    shares = np.array([_SHARES[k] for k in kinds])
    for _ in range(_NODES):
        x, y = (made[-1 - int(rng.integers(min(4, len(made))))] for _ in range(2))
        kind = str(rng.choice(kinds, p=shares / shares.sum()))
        word = _pick(rng, words[kind])
        if kind == "integers":
            integers.append(word(integers[-1], integers[-2]))
        else:
            made.append(_said(kind, word, _pick(rng, entered[:3]), x, y))
    fetches = [made[-1], made[-4], integers[-1]]
    if programs and seed % 6 == 5:
        fetches[1] = tf.nn.dropout(fetches[1], rate=0.3, seed=seed)
    feeds = {t: rng.uniform(-2, 2, tuple(d or 0 for d in t.shape.as_list())).astype(np.float32) for t in entered}
    return DrawnGraph(graph, fetches, [feeds | {t: rng.integers(-9, 9, shape).astype(np.int32) for t in whole}])


def _said(kind: str, word: Callable[..., Any], fed: Any, x: Any, y: Any) -> Any:
    """The value of a word, of what is fed and what was computed."""
    if kind == "rows":
        return x - word(x)
    return word(*{"unary": (x,), "steps": (fed, x, y)}.get(kind, (x, y)))


def alone(bench: Bench, compiler: Any, kind: str, word: Callable[..., Any]) -> DrawnGraph:
    """A word of a word and no other, on the compiler's device: is it one that the compiler takes?"""
    graph = Graph(bench.host)
    with graph.as_default(), graph.device(compiler.device_type):
        dtype = tf.int32 if kind == "integers" else tf.float32
        x, y = (tf.placeholder(dtype, [2, 3]) for _ in range(2))
        made = _said(kind, word, x, _said(kind, word, x, x, y), y)
    return DrawnGraph(graph, [made], [{t: np.ones((2, 3), t.dtype.as_numpy_dtype) for t in (x, y)}])


def _products(rng: np.random.Generator, graph: Graph, seed: int) -> DrawnGraph:
    """A product of matrices, turned or not: of what is fed or computed, with what follows, if anything."""
    m, k, n = (int(i) for i in rng.integers(1, 9, 3))
    if seed % 8 == 7:
        m, k, n = 33, 130, 70
    turned = [bool(rng.random() < 0.4) for _ in range(2)]
    shapes = ((k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n))
    given = [_fed(rng, *shape) for shape in shapes]
    factors = [t for t, _ in given]
    if seed % 4 > 1:  # what feeds it
        side = int(rng.integers(2))
        factors[side] = _pick(rng, _UNARY)(factors[side]) * 0.5
    made = [tf.matmul(*factors, transpose_a=turned[0], transpose_b=turned[1])]
    product = made[0]
    if seed % 4 != 0:  # what follows
        bias, whole = _fed(rng, n), _fed(rng, m, n)
        given += [bias, whole]
        options: Sequence[Callable[[Any], Any]] = (
            lambda y: y + bias[0],
            lambda y: tf.tanh(y) * whole[0],
            lambda y: tf.nn.relu(y + bias[0]) - whole[0],
            lambda y: tf.where(whole[0] > 0.0, y, y * 0.5),
        )
        for _ in range(int(rng.integers(1, 4))):
            made.append(_pick(rng, options)(made[-1]))
    fetches = [made[-1], product] if rng.random() < 0.3 else [made[-1]]
    return DrawnGraph(graph, fetches, [dict(given)], holds=_multiplies)


def _multiplies(opdef: OpDef) -> bool:
    return opdef.region is not None and bool(opdef.region.space)


def _updates(rng: np.random.Generator, graph: Graph, seed: int) -> DrawnGraph:
    """Steps of an optimizer, or sums into a variable, of what is fed or computed; two steps, and then the variables are read."""
    shape = (int(rng.integers(1, 6)), 1031 if seed % 8 == 7 else int(rng.integers(1, 9)))
    v = tf.Variable(rng.uniform(-2, 2, shape).astype(np.float32))
    g, fed = _fed(rng, *shape)
    gradient = _pick(rng, _BINARY)(_pick(rng, _UNARY)(g), g) if seed % 2 else g
    way = seed % (len(_OPTIMIZERS) + 2)
    if way < len(_OPTIMIZERS):
        step: Any = _OPTIMIZERS[way]().apply_gradients([(gradient, v)])
    else:
        step = (tf.assign_add if way == len(_OPTIMIZERS) else tf.assign_sub)(v, gradient).op
    kept = graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    before = [variable.initializer for variable in kept]
    return DrawnGraph(
        graph,
        [step, tf.negative(gradient)],
        [{g: fed}] * 2,
        before,
        kept,
        holds=lambda opdef: opdef.region is not None and bool(opdef.region.writes),
    )


def _parts(rng: np.random.Generator, graph: Graph, seed: int, products: bool) -> DrawnGraph:
    """Parts of a tensor that is fed, read together, and with what else enters; or by a product."""
    m, n = int(rng.integers(2, 7)), 1031 if seed % 8 == 7 else int(rng.integers(2, 9))
    if products and seed % 4 == 3:
        given = [_fed(rng, m, 5), _fed(rng, n, 10)]
        part = tf.split(given[1][0], 2, axis=1)[1]
        made = tf.tanh(tf.matmul(given[0][0], part, transpose_b=True))
        return DrawnGraph(graph, [made], [dict(given)], holds=_multiplies, shows={part.op.type}.isdisjoint)
    ways: Sequence[tuple[tuple[int, ...], Callable[[Any], Sequence[Any]]]] = (
        ((m, 3 * n), lambda t: tf.split(t, 3, axis=1)),
        ((m, 2 * n + 1), lambda t: tf.split(t, [n, 1, n], axis=1)[::2]),
        ((m, n + 3), lambda t: (t[:, 1 : n + 1], t[:, 3:])),
        ((m, 3, n), lambda t: tf.unstack(t, axis=1)),
        ((m + 2, 2, n + 1), lambda t: (t[1 : m + 1, 0, :n], t[2:, 1, 1:])),
        ((m, n + 1), lambda t: (tf.transpose(tf.transpose(t)[1:]),)),
    )
    shape, cut = ways[int(rng.integers(len(ways)))]
    (whole, array), (other, beside) = _fed(rng, *shape), _fed(rng, m, n)
    made, parts = other, cut(whole)
    for part in parts:
        made = _pick(rng, _BINARY)(_pick(rng, _UNARY)(part), made)
    fetches = [made, tf.tanh(whole)] if seed % 4 == 2 else [made]
    cuts = {part.op.type for part in parts}
    return DrawnGraph(graph, fetches, [{whole: array, other: beside}], shows=cuts.isdisjoint)


def _shared(rng: np.random.Generator, graph: Graph, seed: int) -> DrawnGraph:
    """Products that share their right matrix: one that is fed, a variable that the step then writes, or a constant."""
    m, k, n = (int(i) for i in rng.integers(2, 9, 3)) if seed % 2 else (17, 130, 170)
    x, fed = _fed(rng, m, k)
    start = rng.uniform(-0.3, 0.3, (k, n)).astype(np.float32)
    feeds: list[dict[Any, np.ndarray]] = [{x: fed}, {x: fed * np.float32(0.5)}]
    way = seed % 3
    w: Any = (tf.placeholder(tf.float32, [k, n]), tf.Variable(start), tf.constant(start))[way]
    h, last = x, []
    for _ in range(2):
        last.append(tf.tanh(tf.matmul(h, w)))
        h = tf.tanh(tf.matmul(last[-1], w, transpose_b=True))
    if way == 0:
        feeds = [table | {w: start * np.float32(i + 1)} for i, table in enumerate(feeds)]
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(h))) if way == 1 else h
    kept = [w] if way == 1 else []
    before = [variable.initializer for variable in kept]
    return DrawnGraph(
        graph, [step, h, *last], feeds, before, kept, holds=_multiplies, shows=lambda ops: "Arranged" in ops
    )


def _reductions(rng: np.random.Generator, graph: Graph, seed: int) -> DrawnGraph:
    """One node by itself: a sum, a softmax, or one of more than two tensors."""
    shape = (int(rng.integers(1, 6)), 1031 if seed % 8 == 7 else int(rng.integers(1, 9)))
    given = [_fed(rng, *shape) for _ in range(3)]
    x = [t for t, _ in given]
    options: Sequence[Callable[[], Any]] = (
        lambda: tf.nn.softmax(x[0]),
        lambda: tf.reduce_sum(x[0], -1),
        lambda: tf.reduce_max(x[0], -1, keepdims=True),
        lambda: tf.nn.log_softmax(x[0]),
        lambda: tf.add_n(x),
        lambda: tf.reduce_mean(x[0], 0),
    )
    return DrawnGraph(graph, [options[seed % len(options)]()], [dict(given)])


def _gathers(unknown_dims: bool, rng: np.random.Generator, graph: Graph, seed: int) -> DrawnGraph:
    """Rows of a tensor or two, a variable among them, where indices say, with what is computed of them; some are out of range.

    Some tensors are computed, read for the last time here, and of the output's shape: memory that looks free, and is not.
    """
    high, n, few = int(rng.integers(1, 9)), 1031 if seed % 8 == 7 else int(rng.integers(2, 9)), int(rng.integers(1, 3))
    any_shape = unknown_dims and seed % 2 == 1
    computed = seed % 6 == 0
    if computed:
        high, few = 3, 1
    dtype = (tf.int32, tf.int64)[seed // 2 % 2]
    ids = tf.placeholder(dtype, [None if any_shape else 3 + i for i in range(few)])
    (x, fed), (bias, beside) = _fed(rng, high, n), _fed(rng, n)
    tables, kept = [tf.cumsum(x) if computed else x], []
    if seed % 3 == 1:
        kept = [tf.Variable(rng.uniform(-2, 2, (high + 2, n)).astype(np.float32))]
        tables += kept
    made = bias
    for table in tables:
        made = _pick(rng, _BINARY)(_pick(rng, _UNARY)(tf.gather(table, ids)), made)
    row = tf.reduce_sum(made * 0.1, -1)
    if computed:
        made = tf.cumsum(made)
    sizes = [(3, 4), (1, 1), (40, 2), (3, 4)] if any_shape else [(3, 4), (3, 4)]
    feeds: list[dict[Any, np.ndarray]] = [
        {x: fed, bias: beside, ids: rng.integers(0, high, size[:few]).astype(ids.dtype.as_numpy_dtype)}
        for size in sizes
    ]
    wrong = []
    for index in (high, -1):
        bad = feeds[-1][ids].copy()
        bad.flat[int(rng.integers(bad.size))] = index
        wrong.append(feeds[-1] | {ids: bad})
    return DrawnGraph(
        graph,
        [made, row] if seed % 4 else [made],
        feeds,
        [v.initializer for v in kept],
        kept,
        holds=lambda opdef: opdef.region is not None and bool(opdef.region.gathers),
        any_shape=any_shape,
        wrong=wrong,
    )


def _loops(rng: np.random.Generator, graph: Graph, seed: int, products: bool) -> DrawnGraph:
    """A loop of fixed shapes over what is fed, of a number of turns that is fed too, 0 among them."""
    m, n = (int(i) for i in rng.integers(1, 9, 2))
    (x, fed), (w, weights), limit = _fed(rng, m, n), _fed(rng, n, n), tf.placeholder(tf.int32, [])
    word = _pick(rng, _BINARY)

    def body(i: Any, a: Any, b: Any) -> Any:
        following = tf.tanh(word(a, b))
        return i + 1, following, tf.matmul(b, w) * 0.1 if products and seed % 2 else a * 0.5 + b * 0.25

    _, *left = tf.while_loop(lambda i, a, b: tf.less(i, limit), body, [tf.constant(0), x, x * 0.5])
    feeds = [{x: fed, w: weights, limit: np.array(turns, np.int32)} for turns in (3, 0)]
    return DrawnGraph(graph, left, feeds, holds=lambda opdef: opdef.executes == "loop")


def _histories(rng: np.random.Generator, graph: Graph, seed: int, products: bool) -> DrawnGraph:
    """A loop and its gradient, so that it keeps what its iterations compute, and another one reads that; some have a limit."""
    if seed % 4 == 3:
        return _nests(rng, graph, seed, products)
    m, n = int(rng.integers(1, 4)), 131 if seed % 8 == 7 else int(rng.integers(1, 9))
    (x, fed), (y, other), (w, weights) = _fed(rng, m, n), _fed(rng, m, n), _fed(rng, n, n)
    count, limit = tf.placeholder(tf.int32, []), 5 if seed % 4 == 1 else None
    words: list[Any] = [_pick(rng, _SMOOTH) for _ in range(3)]

    def body(i: Any, v: Any, total: Any) -> tuple[Any, ...]:
        u = words[0](tf.matmul(v, w) * 0.05 if products and seed % 2 else v * 0.5 + y * 0.25)
        if seed % 4 == 2:  # halves change places
            u = tf.concat(tf.split(u, [n // 2, n - n // 2], axis=1)[::-1], axis=1)
        u = words[1](u) * 0.5 + (words[2](v) * y * 0.25 if seed % 2 else v * 0.25)
        return i + 1, u, total * 0.5 + tf.reduce_sum(u * 0.1)

    _, last, total = tf.while_loop(lambda i, *_: i < count, body, [0, x, 1.0], maximum_iterations=limit)
    gradients = tf.gradients(tf.reduce_sum(last * last) + total, [x, y, w])
    fetches = [last, total, *(g for g in gradients if g is not None)]
    feeds = [{x: fed, y: other, w: weights, count: np.array(turns, np.int32)} for turns in (3, 0, 70)]
    return DrawnGraph(graph, fetches, feeds, holds=lambda opdef: opdef.executes == "loop")


def _nests(rng: np.random.Generator, graph: Graph, seed: int, products: bool) -> DrawnGraph:
    """Loops within loops, whose numbers of iterations differ, and their gradients: taken behind the outer one, or in its body; or
    the inner one reads rows of a tensor, and makes rows of one."""
    m, n = int(rng.integers(1, 4)), 131 if seed % 8 == 7 else int(rng.integers(1, 9))
    (x, fed), (y, other), (rows, several), (w, weights) = (
        _fed(rng, *shape) for shape in ((m, n), (m, n), (4, m, n), (n, n))
    )
    count, kind, words = tf.placeholder(tf.int32, []), seed // 4 % 4, [_pick(rng, _SMOOTH) for _ in range(3)]

    def ragged(i: Any, v: Any, deeper: int) -> Any:
        def body(j: Any, u: Any) -> tuple[Any, Any]:
            u = words[0](tf.matmul(u, w) * 0.05 if products and kind == 0 else u) * 0.5 + y * 0.25
            return j + 1, ragged(j, u, deeper - 1) if deeper else u

        return tf.while_loop(lambda j, _: tf.less(j, tf.minimum(tf.abs(i - 2), 3)), body, [tf.constant(0), v])[1]

    def cell(h: Any) -> Any:
        return tf.matmul(h, w) * 0.05 if products else h * 0.5

    def outer(i: Any, v: Any, total: Any) -> tuple[Any, ...]:
        if kind == 1:
            made = tf.scan(lambda h, row: words[0](cell(h)) + row * y * 0.25, rows * 0.5, v)
            v = tf.reduce_sum(made, 0) * 0.25
        else:
            u = ragged(i, v, 1 if kind == 3 else 0)
            v = v * 0.5 + tf.gradients(tf.reduce_sum(u * u), [v])[0] * 0.1 if kind == 2 else u
        return i + 1, words[1](v), total * 0.5 + tf.reduce_sum(words[2](v) * 0.1)

    limit = 9 if kind == 0 else None
    _, last, total = tf.while_loop(lambda i, *_: i < count, outer, [0, x, 1.0], maximum_iterations=limit)
    gradients = tf.gradients(tf.reduce_sum(last * last) + total, [x, y, rows, w])
    fetches = [last, total, *(g for g in gradients if g is not None)]
    feeds = [{x: fed, y: other, rows: several, w: weights, count: np.array(turns, np.int32)} for turns in (4, 0, 70)]
    return DrawnGraph(graph, fetches, feeds, holds=lambda opdef: opdef.executes == "loop")


def _unknown(rng: np.random.Generator, graph: Graph, seed: int, products: bool) -> DrawnGraph:
    """One plan for feeds of several extents, 0 and 1 among them."""
    n = int(rng.integers(2, 9))
    x, w, bias = (tf.placeholder(tf.float32, shape) for shape in ([None, n], [n, n], [n]))
    made = tf.matmul(x, w) if products and seed % 2 else x
    made = _pick(rng, _BINARY)(_pick(rng, _UNARY)(made), made)
    fetches = [tf.nn.softmax(made + bias), tf.reduce_sum(made * bias, 0)]
    feeds = [
        {t: rng.uniform(-2, 2, shape).astype(np.float32) for t, shape in ((x, (rows, n)), (w, (n, n)), (bias, (n,)))}
        for rows in (3, 1, 0, 40)
    ]
    return DrawnGraph(graph, fetches, feeds, any_shape=True)


def _unknown_parts(rng: np.random.Generator, graph: Graph, seed: int, products: bool) -> DrawnGraph:
    """Parts of a tensor of dims that only a step knows, cut along those and along others; one plan for several extents."""
    m, n = int(rng.integers(2, 7)), 1031 if seed % 8 == 7 else int(rng.integers(2, 9))
    dims: tuple[int | None, ...]
    if products and seed % 4 == 3:
        x, (w, weights) = tf.placeholder(tf.float32, [None, 10]), _fed(rng, 5, n)
        parts: Sequence[Any] = tf.split(x, 2, axis=1)[1:]
        dims, made, fed = (None, 10), tf.tanh(tf.matmul(parts[0], w)), {w: weights}
    else:
        ways: Sequence[tuple[tuple[int | None, ...], Callable[[Any], Sequence[Any]]]] = (
            ((None, 3 * n), lambda t: tf.split(t, 3, axis=1)),
            ((None, 2 * n + 1), lambda t: tf.split(t, [n, 1, n], axis=1)[::2]),
            ((None, None, 2 * n), lambda t: tf.split(t, 2, axis=-1)),
            ((m, None, n + 1), lambda t: (t[..., :n], t[1 : m + 1, :, 1:])[seed % 2 :][:1]),
            ((None, n + 3), lambda t: (t[1::2, 3:], t[1::2, :n])),
            ((None, n + 3), lambda t: (t[2:9, 1 : n + 1], t[2:9, 3:])),
            ((None, 3, n), lambda t: tf.unstack(t, axis=1)),
            ((None, m, 2, n), lambda t: (tf.transpose(t, [0, 2, 1, 3]),)),
        )
        dims, cut = ways[int(rng.integers(len(ways)))]
        x, fed = tf.placeholder(tf.float32, dims), {}
        parts = cut(x)
        made = _pick(rng, _UNARY)(parts[0])
        for part in parts:
            made = _pick(rng, _BINARY)(_pick(rng, _UNARY)(part), made)
    sizes = [
        [size if d is None and i == 0 else 3 if d is None else d for i, d in enumerate(dims)] for size in (3, 1, 0, 40)
    ]
    if dims[0] is not None:
        sizes = [[size if d is None else d for d in dims] for size in (3, 1, 0, 40)]
    feeds = [{x: rng.uniform(-2, 2, shape).astype(np.float32), **fed} for shape in sizes]
    cuts = {part.op.type for part in parts}
    return DrawnGraph(graph, [made, tf.reduce_sum(made * 0.5, -1)], feeds, shows=cuts.isdisjoint, any_shape=True)


def _unknown_products(rng: np.random.Generator, graph: Graph, seed: int) -> DrawnGraph:
    """A product of which only a step knows some extents, rows, columns or places that are summed over, or all three, with what
    follows; one plan for few and many of each."""
    known = [int(n) for n in rng.integers(2, 9, 3)]
    ways = (0, 1, 2), (1,), (0, 2), (0, 1), (2,), (1, 2), (0,)
    opened = ways[seed % len(ways)]
    turned = [bool(rng.random() < 0.5) for _ in range(2)]

    def sides(m: Any, k: Any, n: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        return ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))

    planned = [None if axis in opened else known[axis] for axis in range(3)]
    factors = [tf.placeholder(tf.float32, shape) for shape in sides(*planned)]
    product = tf.matmul(*factors, transpose_a=turned[0], transpose_b=turned[1])
    made = product * 0.25
    options: Sequence[Callable[[Any], Any]] = (tf.tanh, tf.nn.relu, lambda y: y * tf.sigmoid(y), lambda y: 1.0 - y)
    for _ in range(int(rng.integers(1, 3))):
        made = _pick(rng, options)(made)
    feeds = []
    for several in ((3, 4, 5), (1, 1, 1), (2, 0, 3), (0, 3, 2), (4, 2, 0), (40, 70, 33), (3, 600, 7)):
        sizes = [several[axis] if axis in opened else known[axis] for axis in range(3)]
        shapes = zip(factors, sides(*sizes), strict=True)
        feeds.append({t: rng.uniform(-1, 1, shape).astype(np.float32) for t, shape in shapes})
    return DrawnGraph(graph, [made], feeds, holds=_multiplies, shows={product.op.type}.isdisjoint, any_shape=True)


def _pick(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]
