"""Ops and the shapes that they are tried at: each family draws its arrays and its attributes from a generator of random numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["FAMILIES", "Drawn", "draw"]


@dataclass(frozen=True)
class Drawn:
    """One op at one shape.

    Attributes:
      arrays: its inputs, made where they are wanted.
      op: ``op(tf, *tensors)``.
      shown: shapes and attributes.
      checked: whether frameworks must agree on its results.
    """

    arrays: Callable[[], list[Any]]
    op: Callable[..., Any]
    shown: str
    checked: bool = True


class Chance(random.Random):
    """Sizes whose logarithms are uniform, and shapes of some elements."""

    def size(self, least: int, most: int) -> int:
        return max(least, round(math.exp(self.uniform(math.log(least), math.log(most)))))

    def shape(self, rank: int | tuple[int, int], elements: int = 1 << 20) -> list[int]:
        """Dims whose product is about a number of elements, from a sixteenth of it."""
        count = rank if isinstance(rank, int) else self.randint(*rank)
        logs = [self.random() ** 2 + 0.02 for _ in range(count)]
        total = math.log(elements / self.choice([1, 4, 16])) / sum(logs)
        return [max(1, round(math.exp(one * total))) for one in logs]

    def axes(self, rank: int) -> list[int]:
        return sorted(self.sample(range(rank), self.randint(1, rank)))


def _normal(*shapes: Any) -> Callable[[], list[Any]]:
    def make() -> list[Any]:
        import numpy as np

        rng = np.random.RandomState(7)
        return [rng.standard_normal(s).astype("float32") for s in shapes]

    return make


def _with_ids(
    shape: Any, count: Any, below: int, ordered: bool = False, dtype: str = "int32"
) -> Callable[[], list[Any]]:
    """Values, and ids of a shape."""

    def make() -> list[Any]:
        import numpy as np

        rng = np.random.RandomState(7)
        ids = rng.randint(0, below, count).astype(dtype)
        return [rng.standard_normal(shape).astype("float32"), np.sort(ids) if ordered else ids]

    return make


def _unary(name: str, rank: Any = (1, 4), **attributes: Any) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = chance.shape(rank)
        return Drawn(_normal(shape), lambda tf, x: _find(tf, name)(x, **attributes), f"{shape} {attributes or ''}")

    return drawn


def _find(tf: Any, name: str) -> Any:
    for part in name.split("."):
        tf = getattr(tf, part)
    return tf


def _reduction(name: str, one: bool = False) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = chance.shape((2, 4))
        axes = chance.axes(len(shape))
        axis = axes[0] if one else axes
        return Drawn(_normal(shape), lambda tf, x: _find(tf, name)(x, axis), f"{shape} axis {axis}")

    return drawn


def _running(name: str) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = chance.shape((1, 3))
        axis, flags = chance.randrange(len(shape)), {k: chance.random() < 0.3 for k in ("exclusive", "reverse")}
        return Drawn(_normal(shape), lambda tf, x: _find(tf, name)(x, axis, **flags), f"{shape} axis {axis} {flags}")

    return drawn


def _matmul(chance: Chance) -> Drawn:
    batch = chance.choice([[], [], [chance.size(2, 256)], [chance.size(2, 16), chance.size(2, 16)]])
    while True:
        m, k, n = (chance.choice([1, chance.size(1, 16), chance.size(1, 4096)]) for _ in range(3))
        if 1e5 < math.prod(batch) * m * k * n < 1e8 and math.prod(batch) * max(m * k, k * n, m * n) < 4e6:
            break
    ta, tb = (chance.random() < 0.5 for _ in range(2))
    a, b = [*batch, *((k, m) if ta else (m, k))], [*batch, *((n, k) if tb else (k, n))]
    return Drawn(_normal(a, b), lambda tf, x, y: tf.matmul(x, y, transpose_a=ta, transpose_b=tb), f"{a} {b} {ta} {tb}")


def _transpose(chance: Chance) -> Drawn:
    shape = chance.shape((2, 5))
    order = chance.sample(range(len(shape)), len(shape))
    return Drawn(_normal(shape), lambda tf, x: tf.transpose(x, order), f"{shape} {order}")


def _gather(chance: Chance) -> Drawn:
    shape = chance.shape((1, 3))
    axis = chance.randrange(len(shape))
    inner = math.prod(shape) // shape[axis]
    count = max(1, min(1 << 16, (1 << 20) // inner))
    return Drawn(
        _with_ids(shape, count, shape[axis]), lambda tf, x, i: tf.gather(x, i, axis=axis), f"{shape} {count} at {axis}"
    )


def _gather_gradient(chance: Chance) -> Drawn:
    rows, width, count = chance.size(1, 50000), chance.size(1, 512), chance.size(1, 50000)
    count, rows = max(1, min(count, (1 << 20) // width)), max(1, min(rows, (1 << 21) // width))
    return Drawn(
        _with_ids([count, width], count, rows),
        lambda tf, g, i: tf.unsorted_segment_sum(g, i, rows),
        f"[{count}, {width}] into {rows}",
    )


def _segment(name: str, ordered: bool = True) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        width, rows = chance.size(1, 512), chance.size(1, 50000)
        count = max(1, min(chance.size(10, 1 << 17), (1 << 20) // width))
        more = [] if ordered else [rows]
        return Drawn(
            _with_ids([count, width], count, rows, ordered),
            lambda tf, x, i: _find(tf, name)(x, i, *more),
            f"[{count}, {width}] into {rows}",
            checked=not ordered,
        )

    return drawn


def _scatter(name: str) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        rows, width = chance.size(1, 50000), chance.size(1, 512)
        rows = max(1, min(rows, (1 << 20) // width))
        count = max(1, min(chance.size(1, 50000), (1 << 20) // width))

        def op(tf: Any, updates: Any, ids: Any) -> Any:
            return _find(tf, name)(tf.Variable(tf.zeros([rows, width])), ids, updates)

        return Drawn(_with_ids([count, width], count, rows), op, f"[{count}, {width}] into {rows}", checked=False)

    return drawn


def _scatter_nd(chance: Chance) -> Drawn:
    rows, width, count = chance.size(1, 5000), chance.size(1, 200), chance.size(1, 50000)
    count = max(1, min(count, (1 << 20) // width))
    return Drawn(
        _with_ids([count, width], [count, 1], rows),
        lambda tf, u, i: tf.scatter_nd(i, u, [rows, width]),
        f"[{count}, {width}] into {rows}",
    )


def _concat(chance: Chance) -> Drawn:
    shape, count = chance.shape((1, 4), 1 << 18), chance.size(2, 12)
    axis = chance.randrange(len(shape))
    return Drawn(_normal(*[shape] * count), lambda tf, *x: tf.concat(x, axis), f"{count} of {shape} at {axis}")


def _split(chance: Chance) -> Drawn:
    shape, count = chance.shape((1, 4)), chance.size(2, 12)
    axis = chance.randrange(len(shape))
    shape[axis] = -(-shape[axis] // count) * count
    return Drawn(_normal(shape), lambda tf, x: tf.split(x, count, axis), f"{shape} into {count} at {axis}")


def _stack(chance: Chance) -> Drawn:
    shape, count = chance.shape((1, 3), 1 << 17), chance.size(2, 30)
    axis = chance.randint(0, len(shape))
    return Drawn(_normal(*[shape] * count), lambda tf, *x: tf.stack(x, axis), f"{count} of {shape} at {axis}")


def _unstack(chance: Chance) -> Drawn:
    shape = chance.shape((2, 4))
    axis = chance.randrange(len(shape))
    shape[axis] = min(shape[axis], 50)
    return Drawn(_normal(shape), lambda tf, x: tf.unstack(x, axis=axis), f"{shape} at {axis}")


def _tile(chance: Chance) -> Drawn:
    shape = chance.shape((1, 4), 1 << 16)
    times = [chance.choice([1, 1, 2, 5]) for _ in shape]
    return Drawn(_normal(shape), lambda tf, x: tf.tile(x, times), f"{shape} {times}")


def _pad(mode: str) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = chance.shape((1, 4))
        around = [[chance.randint(0, min(3, n - 1)), chance.randint(0, min(3, n - 1))] for n in shape]
        return Drawn(_normal(shape), lambda tf, x: tf.pad(x, around, mode), f"{shape} {around}")

    return drawn


def _reverse(chance: Chance) -> Drawn:
    shape = chance.shape((1, 4))
    axes = chance.axes(len(shape))
    return Drawn(_normal(shape), lambda tf, x: tf.reverse(x, axes), f"{shape} {axes}")


def _strided_slice(gradient: bool) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = chance.shape((1, 4))
        index = tuple(
            slice(chance.randint(0, n // 3), n, chance.choice([1, 1, 2, 3])) if chance.random() < 0.7 else slice(None)
            for n in shape
        )

        def op(tf: Any, x: Any) -> Any:
            part = x[index]
            return tf.gradients(part, x, tf.ones_like(part))[0] if gradient else part * 1.0

        return Drawn(_normal(shape), op, f"{shape} {index}")

    return drawn


def _one_hot(chance: Chance) -> Drawn:
    depth = chance.size(2, 5000)
    shape = chance.shape((1, 2), max(4, (1 << 20) // depth))
    axis = chance.choice([-1, 0])
    return Drawn(
        _with_ids([1], shape, depth), lambda tf, x, i: tf.one_hot(i, depth, axis=axis), f"{shape} {depth} {axis}"
    )


def _top_k(chance: Chance) -> Drawn:
    rows = chance.size(1, 5000)
    width = max(2, min(chance.size(2, 1 << 20), (1 << 20) // rows))
    k = chance.choice([1, min(width, 5), chance.size(1, width)])
    return Drawn(_normal([rows, width]), lambda tf, x: tf.nn.top_k(x, k)[0], f"[{rows}, {width}] {k}")


def _broadcast(name: str, gradient: bool = False) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = chance.shape((2, 5))
        a, b = ([1 if chance.random() < 0.3 else n for n in shape] for _ in range(2))

        def op(tf: Any, x: Any, y: Any) -> Any:
            made = _find(tf, name)(x, y)
            return tf.gradients(made, [x, y]) if gradient else made

        return Drawn(_normal(a, b), op, f"{a} {b}")

    return drawn


def _images(chance: Chance, elements: int = 1 << 20, channels: int = 256) -> list[int]:
    """A batch of images."""
    while True:
        shape = [
            chance.size(1, 64),
            chance.size(1, 224),
            chance.size(1, 224),
            chance.choice([1, 3, chance.size(1, channels)]),
        ]
        if elements / 16 < math.prod(shape) < elements:
            return shape


def _pool(name: str, gradient: bool = False) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = _images(chance)
        size, step = chance.choice([2, 2, 3, 3, 5, 8]), chance.choice([1, 2, 2, 3])
        size = size if step <= size else step

        def op(tf: Any, x: Any) -> Any:
            made = _find(tf, name)(x, [1, size, size, 1], [1, step, step, 1], "SAME")
            return tf.gradients(made, x)[0] if gradient else made

        return Drawn(_normal(shape), op, f"{shape} {size}/{step}")

    return drawn


def _conv(direction: str, rank: int = 2, dilated: bool = False) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        while True:
            size = [chance.size(1, {1: 4000, 2: 128, 3: 32}[rank]) for _ in range(rank)]
            window = [min(n, chance.choice([1, 2, 3, 3, 5, chance.size(1, 64)])) for n in size]
            step = 1 if dilated else chance.choice([1, 1, 1, 2, 3])
            rate = chance.choice([2, 3, 4]) if dilated else 1
            batch, c, o = chance.size(1, 64), *(chance.choice([1, 3, chance.size(1, 256)]) for _ in range(2))
            span = [(k - 1) * rate + 1 for k in window]
            padding = chance.choice(["SAME", "VALID"])
            if padding == "VALID" and any(p > n for p, n in zip(span, size, strict=True)):
                continue
            out = [-(-n // step) if padding == "SAME" else (n - p) // step + 1 for n, p in zip(size, span, strict=True)]
            work = batch * math.prod(out) * math.prod(window) * c * o
            x, w, y = [batch, *size, c], [*window, c, o], [batch, *out, o]
            if 1e5 < work < 1e8 and max(map(math.prod, (x, w, y))) < 2e6:
                break
        if rank == 1:
            given = {"stride": step, "padding": padding}
            return Drawn(_normal(x, w), lambda tf, a, b: tf.nn.conv1d(a, b, **given), f"{x} {w} {given}")
        known = {"strides": [1, *[step] * rank, 1], "padding": padding, "dilations": [1, *[rate] * rank, 1]}
        name = "conv3d" if rank == 3 else "conv2d"
        shown = f"{x} {w} /{step} {padding} x{rate}"

        def both(tf: Any, a: Any, b: Any, g: Any) -> Any:
            made = _find(tf.nn, name)(a, b, **known)
            return tf.gradients(made, b if direction == "filter" else a, g)[0]

        if direction == "forward":
            return Drawn(_normal(x, w), lambda tf, a, b: _find(tf.nn, name)(a, b, **known), shown)
        return Drawn(_normal(x, w, y), both, shown)

    return drawn


def _depthwise(direction: str) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape, times = _images(chance, 1 << 19), chance.choice([1, 1, 2, 4])
        size, step = chance.choice([1, 2, 3, 3, 5]), chance.choice([1, 1, 2])
        w = [size, size, shape[-1], times]

        def op(tf: Any, a: Any, b: Any) -> Any:
            made = tf.nn.depthwise_conv2d(a, b, [1, step, step, 1], "SAME")
            return made if direction == "forward" else tf.gradients(made, b if direction == "filter" else a)[0]

        return Drawn(_normal(shape, w), op, f"{shape} {w} /{step}")

    return drawn


def _resize(name: str, gradient: bool = False) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = _images(chance, 1 << 18)
        to = [chance.size(1, 200) for _ in range(2)]
        to = [min(n, max(1, (1 << 20) // math.prod(shape) * m)) for n, m in zip(to, shape[1:3], strict=True)]

        def op(tf: Any, x: Any) -> Any:
            made = _find(tf.image, name)(x, to)
            return tf.gradients(made, x)[0] if gradient else made

        return Drawn(_normal(shape), op, f"{shape} to {to}")

    return drawn


def _batch_norm(training: bool) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = _images(chance)
        one = [shape[-1]]

        def op(tf: Any, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
            given = {} if training else {"mean": mean, "variance": tf.abs(variance) + 1}
            return tf.nn.fused_batch_norm(x, scale, offset, is_training=training, **given)[0]

        return Drawn(_normal(shape, one, one, one, one), op, f"{shape}")

    return drawn


def _sparse_matmul(chance: Chance) -> Drawn:
    rows, columns, width = chance.size(1, 5000), chance.size(1, 5000), chance.size(1, 256)
    count = min(rows * columns, chance.size(10, 100_000), (1 << 22) // width)
    adjoint = chance.random() < 0.5

    def make() -> list[Any]:
        import numpy as np

        rng = np.random.RandomState(7)
        places = np.sort(rng.choice(rows * columns, count, False))
        at = np.stack([places // columns, places % columns], 1).astype("int64")
        b = [rows if adjoint else columns, width]
        return [at, rng.standard_normal(count).astype("float32"), rng.standard_normal(b).astype("float32")]

    def op(tf: Any, at: Any, values: Any, b: Any) -> Any:
        sparse = tf.SparseTensor(at, values, [rows, columns])
        return tf.sparse_tensor_dense_matmul(sparse, b, adjoint_a=adjoint)

    return Drawn(make, op, f"[{rows}, {columns}] of {count} by {width} {adjoint}")


def _sampled(name: str, **attributes: Any) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        shape = chance.shape((1, 3))
        return Drawn(_normal([1]), lambda tf, _: _find(tf, name)(shape, **attributes), f"{shape}", checked=False)

    return drawn


def _gamma(chance: Chance) -> Drawn:
    count, alphas = chance.size(1, 100_000), chance.size(1, 1000)
    count = max(1, min(count, (1 << 18) // alphas))

    def op(tf: Any, alpha: Any) -> Any:
        return tf.random_gamma([count], tf.abs(alpha) + 0.1)

    return Drawn(_normal([alphas]), op, f"[{count}] of {alphas}", checked=False)


def _multinomial(chance: Chance) -> Drawn:
    rows, classes, count = chance.size(1, 5000), chance.size(1, 5000), chance.size(1, 100_000)
    classes, count = max(1, min(classes, (1 << 20) // rows)), max(1, min(count, (1 << 18) // rows))
    return Drawn(
        _normal([rows, classes]), lambda tf, x: tf.multinomial(x, count), f"[{rows}, {classes}] {count}", checked=False
    )


def _cross_entropy(chance: Chance) -> Drawn:
    rows = chance.size(1, 10_000)
    classes = max(2, min(chance.size(2, 50_000), (1 << 20) // rows))
    return Drawn(
        _with_ids([rows, classes], rows, classes),
        lambda tf, x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x),
        f"[{rows}, {classes}]",
    )


def _blocks(name: str) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        block = chance.choice([2, 3, 4])
        b, h, w, c = _images(chance, 1 << 18, 32)
        shape = [b, h * block, w * block, c] if name == "space_to_depth" else [b, h, w, c * block * block]
        return Drawn(_normal(shape), lambda tf, x: _find(tf, name)(x, block), f"{shape} {block}")

    return drawn


def _square(name: str) -> Callable[[Chance], Drawn]:
    def drawn(chance: Chance) -> Drawn:
        size = chance.size(1, 300)
        batch = max(1, min(chance.size(1, 5000), 2_000_000 // size**3, 50_000 // size))

        def op(tf: Any, x: Any) -> Any:
            positive = tf.matmul(x, x, transpose_b=True) + tf.eye(size) * 3.0
            return _find(tf, name)(positive)

        return Drawn(_normal([batch, size, size]), op, f"[{batch}, {size}, {size}]", checked=False)

    return drawn


def _reverse_sequence(chance: Chance) -> Drawn:
    batch, steps, width = chance.size(1, 500), chance.size(1, 500), chance.size(1, 500)
    width = max(1, min(width, (1 << 20) // (batch * steps)))
    return Drawn(
        _with_ids([batch, steps, width], [batch], steps + 1),
        lambda tf, x, n: tf.reverse_sequence(x, n, seq_axis=1, batch_axis=0),
        f"[{batch}, {steps}, {width}]",
    )


def _mask(chance: Chance) -> Drawn:
    shape = chance.shape((1, 3))
    return Drawn(_with_ids(shape, [shape[0]], 2), lambda tf, x, m: tf.boolean_mask(x, tf.equal(m, 1)), f"{shape}")


def _partition(chance: Chance) -> Drawn:
    shape, parts = chance.shape((1, 3)), chance.size(1, 50)
    return Drawn(
        _with_ids(shape, [shape[0]], parts), lambda tf, x, i: tf.dynamic_partition(x, i, parts), f"{shape} {parts}"
    )


def _unique(chance: Chance) -> Drawn:
    count, below = chance.size(10, 1 << 18), chance.size(1, 1 << 20)
    return Drawn(_with_ids([1], [count], below), lambda tf, _, i: tf.unique(i), f"{count} of {below}")


def _bincount(chance: Chance) -> Drawn:
    count, below = chance.size(10, 1 << 20), chance.size(1, 1 << 16)
    return Drawn(_with_ids([1], [count], below), lambda tf, _, i: tf.bincount(i), f"{count} of {below}")


def _einsum(chance: Chance) -> Drawn:
    b, h, q, k, d = chance.size(1, 8), chance.size(1, 12), chance.size(1, 128), chance.size(1, 128), chance.size(1, 64)
    first, second = [b, q, h, d], [b, k, h, d]
    return Drawn(_normal(first, second), lambda tf, x, y: tf.einsum("bqhd,bkhd->bhqk", x, y), f"{first} {second}")


def _patches(chance: Chance) -> Drawn:
    shape, size = _images(chance, 1 << 16), chance.choice([2, 3, 5])
    step = chance.choice([1, 2, 3])

    def op(tf: Any, x: Any) -> Any:
        return tf.extract_image_patches(x, [1, size, size, 1], [1, step, step, 1], [1, 1, 1, 1], "SAME")

    return Drawn(_normal(shape), op, f"{shape} {size}/{step}")


def _boxes(chance: Chance) -> Drawn:
    shape, count = _images(chance, 1 << 18), chance.size(1, 100)
    to = [chance.size(1, 14) for _ in range(2)]

    def op(tf: Any, x: Any, boxes: Any) -> Any:
        return tf.image.crop_and_resize(x, tf.sigmoid(boxes), tf.zeros([count], tf.int32), to)

    return Drawn(_normal(shape, [count, 4]), op, f"{shape} {count} to {to}")


FAMILIES: dict[str, Callable[[Chance], Drawn]] = {
    **{name: _reduction(f"reduce_{name}") for name in ("sum", "mean", "max", "prod")},
    **{name: _reduction(name, one=True) for name in ("argmax", "argmin")},
    "logsumexp": _reduction("reduce_logsumexp"),
    **{name: _running(name) for name in ("cumsum", "cumprod")},
    **{name: _unary(f"nn.{name}", (2, 3)) for name in ("softmax", "log_softmax", "l2_loss", "elu", "softplus", "selu")},
    **{name: _unary(name) for name in ("tanh", "sigmoid", "exp", "erf", "square", "sign", "round", "lgamma")},
    "matmul": _matmul,
    "einsum": _einsum,
    "transpose": _transpose,
    "gather": _gather,
    "gather_gradient": _gather_gradient,
    **{name: _segment(name) for name in ("segment_sum", "segment_mean", "segment_max", "segment_prod")},
    **{name: _segment(name, ordered=False) for name in ("unsorted_segment_max", "unsorted_segment_min")},
    **{name: _scatter(name) for name in ("scatter_add", "scatter_update", "scatter_max")},
    "scatter_nd": _scatter_nd,
    "concat": _concat,
    "split": _split,
    "stack": _stack,
    "unstack": _unstack,
    "tile": _tile,
    "pad": _pad("CONSTANT"),
    "mirror_pad": _pad("REFLECT"),
    "reverse": _reverse,
    "strided_slice": _strided_slice(False),
    "strided_slice_gradient": _strided_slice(True),
    "one_hot": _one_hot,
    "top_k": _top_k,
    **{name: _broadcast(name) for name in ("add", "multiply", "maximum", "less", "floordiv")},
    "multiply_gradient": _broadcast("multiply", gradient=True),
    **{name: _pool(f"nn.{name}") for name in ("max_pool", "avg_pool")},
    **{f"{name}_gradient": _pool(f"nn.{name}", gradient=True) for name in ("max_pool", "avg_pool")},
    **{f"conv2d_{d}": _conv(d) for d in ("forward", "input", "filter")},
    **{f"conv3d_{d}": _conv(d, 3) for d in ("forward", "input", "filter")},
    **{f"dilated_{d}": _conv(d, dilated=True) for d in ("forward", "input", "filter")},
    "conv1d": _conv("forward", 1),
    **{f"depthwise_{d}": _depthwise(d) for d in ("forward", "input", "filter")},
    **{name: _resize(name) for name in ("resize_bilinear", "resize_nearest_neighbor", "resize_area")},
    "resize_bicubic": _resize("resize_bicubic"),
    "resize_bilinear_gradient": _resize("resize_bilinear", gradient=True),
    "batch_norm": _batch_norm(False),
    "batch_norm_training": _batch_norm(True),
    "sparse_matmul": _sparse_matmul,
    "random_normal": _sampled("random_normal"),
    "random_uniform": _sampled("random_uniform"),
    "truncated_normal": _sampled("truncated_normal"),
    "random_integers": _sampled("random_uniform", maxval=1000, dtype="int32"),
    "random_gamma": _gamma,
    "multinomial": _multinomial,
    "cross_entropy": _cross_entropy,
    **{name: _blocks(name) for name in ("space_to_depth", "depth_to_space")},
    **{name: _square(name) for name in ("cholesky", "matrix_inverse", "matrix_determinant")},
    "reverse_sequence": _reverse_sequence,
    "boolean_mask": _mask,
    "dynamic_partition": _partition,
    "unique": _unique,
    "bincount": _bincount,
    "patches": _patches,
    "crop_and_resize": _boxes,
}


def draw(family: str, number: int) -> Drawn:
    """The shape of this number."""
    return FAMILIES[family](Chance(f"{family} {number}"))
