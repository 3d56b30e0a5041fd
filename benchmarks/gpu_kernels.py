"""Single kernels beside PyTorch's: those that memory bounds in bytes moved, products and attention in operations.

A :class:`Case` says one computation twice, as people write it for graphdock and as PyTorch has it. A step computes it several times
over, of several inputs, so that what a step costs besides is little; results stay on the GPU. Everything is bfloat16 but indices,
statistics of batch norm, and updates, which are float32. What is moved is what any kernel has to read and write once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CASES", "Case", "graphdock_kernel", "inputs_of", "torch_kernel"]

_EPSILON = 1e-5
_HALF = 2


class Case(NamedTuple):
    """One computation.

    Attributes:
      sizes, tiny: for a GPU, and to try it out with.
      inputs: of the sizes: name -> shape of a float input, or an array that stays as it is.
      graphdock, torch: of the framework's module and the inputs by name; they give one tensor.
      work: of the sizes: bytes moved, or operations. ``unit``: ``GB/s`` or ``TFLOP/s``.
      slopes: inputs that the gradient is computed of, too. ``count``: how often a step computes it.
      wide: inputs that are float32.
    """

    sizes: Mapping[str, int]
    tiny: Mapping[str, int]
    inputs: Callable[..., Mapping[str, Any]]
    graphdock: Callable[..., Any]
    torch: Callable[..., Any]
    work: Callable[..., float]
    unit: str = "GB/s"
    slopes: str = ""
    count: int = 4
    wide: str = ""


def inputs_of(case: Case, tiny: bool) -> dict[str, np.ndarray]:
    """Arrays: float32, or whole numbers. Large ones repeat some numbers."""
    made: dict[str, np.ndarray] = {}
    some = np.random.default_rng(1).standard_normal(1 << 20, np.float32)
    for name, given in case.inputs(**(case.tiny if tiny else case.sizes)).items():
        made[name] = given if isinstance(given, np.ndarray) else np.resize(np.roll(some, len(made)), given) * 0.5
    return made


# -- graphdock


def graphdock_kernel(
    tf: Any, session: Any, case: Case, tiny: bool, dtype: Any = None
) -> tuple[Callable[[], Any], list[Any]]:
    """A step that computes a case some times over, and the variables that it leaves the results of the first one in.

    ``dtype``: in place of bfloat16.
    """
    arrays, half = inputs_of(case, tiny), dtype or tf.bfloat16
    kept: list[Any] = []
    done = []
    for _ in range(1 if tiny else case.count):
        held = {n: _held(tf, a, half if n not in case.wide.split() else tf.float32) for n, a in arrays.items()}
        session.run(tf.variables_initializer(list(held.values())))
        for name, variable in held.items():
            variable.load(arrays[name].astype(variable.dtype.base_dtype.as_numpy_dtype), session)
        x = {name: variable.read_value() for name, variable in held.items()}
        y = case.graphdock(tf, **x)
        made = [y]
        if case.slopes:
            arrives = tf.Variable(tf.ones(y.shape, y.dtype), trainable=False)
            session.run(arrives.initializer)
            made += tf.gradients(y, [x[n] for n in case.slopes.split()], [arrives.read_value()])
        into = [tf.Variable(tf.zeros(t.shape, t.dtype), trainable=False) for t in made]
        session.run(tf.variables_initializer(into))
        done += [v.assign(t).op for v, t in zip(into, made, strict=True)]
        kept = kept or into
    return session.make_callable(tf.group(*done)), kept


def _held(tf: Any, array: np.ndarray, half: Any) -> Any:
    dtype = half if array.dtype == np.float32 else tf.as_dtype(array.dtype)
    return tf.Variable(tf.zeros(array.shape, dtype), trainable=False)


# -- PyTorch


def torch_kernel(
    torch: Any, where: Any, case: Case, tiny: bool, wrap: Callable[[Any], Any], dtype: Any = None
) -> tuple[Callable[[], Any], list[Any]]:
    """As :func:`graphdock_kernel`: the second is empty before the step ran, and holds its first results then."""
    half, kept, arrives = dtype or torch.bfloat16, list[Any](), list[Any]()
    arrays, names = inputs_of(case, tiny), case.slopes.split()
    count = 1 if tiny else case.count
    given = [{n: _there(torch, where, n, a, case, half) for n, a in arrays.items()} for _ in range(count)]
    for x in given:
        for name in names:
            x[name].requires_grad_(True)
    run = wrap(lambda x: case.torch(torch, **x))

    def call() -> Any:
        made = []
        for x in given:
            y = run(x)
            if names and not arrives:
                arrives.append(torch.ones_like(y))
            made.append([y, *torch.autograd.grad(y, [x[n] for n in names], arrives)] if names else [y])
        kept[:] = made[0]
        if where.type == "cuda":
            torch.cuda.synchronize()

    return call, kept


def _there(torch: Any, where: Any, name: str, array: np.ndarray, case: Case, half: Any) -> Any:
    x = torch.from_numpy(array).to(where)
    if array.dtype == np.float32 and name not in case.wide.split():
        x = x.to(half)
    if name == "filter":  # where PyTorch's library has them
        x = x.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return x


# -- cases


def _gelu(tf: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + tf.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _torch_gelu(torch: Any, x: Any) -> Any:
    return torch.nn.functional.gelu(x, approximate="tanh")


def _layer_norm(tf: Any, x: Any, g: Any, b: Any) -> Any:
    d = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    return d * tf.rsqrt(tf.reduce_mean(tf.square(d), axis=-1, keepdims=True) + _EPSILON) * g + b


def _torch_layer_norm(torch: Any, x: Any, g: Any, b: Any) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], g, b, _EPSILON)


def _rms_norm(tf: Any, x: Any, g: Any) -> Any:
    return x * tf.rsqrt(tf.reduce_mean(tf.square(x), axis=-1, keepdims=True) + _EPSILON) * g


def _torch_rms_norm(torch: Any, x: Any, g: Any) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], g, _EPSILON)


def _cross_entropy(tf: Any, x: Any, labels: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)


def _torch_cross_entropy(torch: Any, x: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(x, labels, reduction="none")


def _linear_cross_entropy(tf: Any, x: Any, w: Any, labels: Any) -> Any:
    return tf.reduce_mean(_cross_entropy(tf, tf.matmul(x, w), labels))


def _torch_linear_cross_entropy(torch: Any, x: Any, w: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(x @ w, labels)


def _rotary(tf: Any, x: Any, cos: Any, sin: Any) -> Any:
    a, b = tf.split(x, 2, -1)
    return tf.concat([a * cos - b * sin, b * cos + a * sin], -1)


def _torch_rotary(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def _batch_norm(tf: Any, x: Any, g: Any, b: Any) -> Any:
    return tf.nn.fused_batch_norm(x, g, b, epsilon=1e-3)[0]


def _torch_batch_norm(torch: Any, x: Any, g: Any, b: Any) -> Any:
    y = torch.nn.functional.batch_norm(x.permute(0, 3, 1, 2), None, None, g, b, training=True, eps=1e-3)
    return y.permute(0, 2, 3, 1)


def _dense(tf: Any, x: Any, w: Any, b: Any) -> Any:
    return _gelu(tf, tf.nn.bias_add(tf.matmul(x, w), b))


def _torch_dense(torch: Any, x: Any, w: Any, b: Any) -> Any:
    return _torch_gelu(torch, torch.addmm(b, x, w))


def _attention(tf: Any, q: Any, k: Any, v: Any) -> Any:
    length, depth = q.shape.as_list()[-2:]
    scores = tf.matmul(q * depth**-0.5, k, transpose_b=True)
    seen = tf.cast(np.tri(length, dtype=np.float32), q.dtype)
    return tf.matmul(tf.nn.softmax(scores * seen - 1e9 * (1.0 - seen)), v)


def _torch_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _convolution(tf: Any, x: Any, filter: Any, b: Any) -> Any:
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, filter, [1, 1, 1, 1], "SAME"), b))


def _torch_convolution(torch: Any, x: Any, filter: Any, b: Any) -> Any:
    return torch.relu(torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), filter, b, padding=1)).permute(0, 2, 3, 1)


def _moves(*shapes: str) -> Callable[..., float]:
    """Bytes of arrays whose elements are the product of the sizes that each names."""

    def moved(**sizes: int) -> float:
        return float(sum(_HALF * np.prod([sizes[n] for n in shape]) for shape in shapes))

    return moved


def _times(factor: float, names: str) -> Callable[..., float]:
    return lambda **sizes: factor * float(np.prod([sizes[n] for n in names]))


def _labels(rows: int, classes: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, classes, rows)


_ROWS = ({"n": 16384, "d": 4096}, {"n": 5, "d": 12})
_DENSE = ({"m": 8192, "n": 4096, "k": 4096}, {"m": 12, "n": 8, "k": 16})
_HEADS = ({"b": 8, "h": 16, "s": 2048, "d": 64}, {"b": 1, "h": 2, "s": 20, "d": 16})
_ANGLES: Callable[..., np.ndarray] = lambda s, d: np.outer(np.arange(s), 0.5 ** np.arange(d // 2))[:, None]  # noqa: E731
_IMAGES = ({"n": 64, "h": 56, "w": 56, "c": 128}, {"n": 2, "h": 5, "w": 5, "c": 8})


def _row(d: int, n: int, **vectors: Any) -> dict[str, Any]:
    return {"x": (n, d), **{name: (d,) for name in vectors}}


#: Name -> what is computed.
CASES: Mapping[str, Case] = {
    "gelu": Case(*_ROWS, lambda n, d: {"x": (n, d)}, _gelu, _torch_gelu, _moves("nd", "nd")),
    "gelu with gradient": Case(
        *_ROWS, lambda n, d: {"x": (n, d)}, _gelu, _torch_gelu, _moves("nd", "nd", "nd", "nd"), slopes="x"
    ),
    "softmax": Case(
        *_ROWS,
        lambda n, d: {"x": (n, d)},
        lambda tf, x: tf.nn.softmax(x),
        lambda t, x: t.softmax(x, -1),
        _moves("nd", "nd"),
    ),
    "layer norm": Case(*_ROWS, lambda n, d: _row(d, n, g=1, b=1), _layer_norm, _torch_layer_norm, _moves("nd", "nd")),
    "layer norm with gradient": Case(
        *_ROWS, lambda n, d: _row(d, n, g=1, b=1), _layer_norm, _torch_layer_norm, _moves(*5 * ["nd"]), slopes="x g b"
    ),
    "rms norm": Case(*_ROWS, lambda n, d: _row(d, n, g=1), _rms_norm, _torch_rms_norm, _moves("nd", "nd")),
    "dropout": Case(
        *_ROWS,
        lambda n, d: {"x": (n, d)},
        lambda tf, x: tf.nn.dropout(x, rate=0.1, seed=1),
        lambda t, x: t.nn.functional.dropout(x, 0.1, True),
        _moves("nd", "nd"),
    ),
    "cross-entropy with gradient": Case(
        {"n": 4096, "v": 32000},
        {"n": 5, "v": 12},
        lambda n, v: {"x": (n, v), "labels": _labels(n, v)},
        _cross_entropy,
        _torch_cross_entropy,
        _moves("nv", "nv"),
        slopes="x",
    ),
    "rotary": Case(
        {"b": 16, "s": 2048, "h": 16, "d": 128},
        {"b": 1, "s": 5, "h": 2, "d": 8},
        lambda b, s, h, d: {
            "x": (b, s, h, d),
            "cos": np.cos(_ANGLES(s, d)).astype(np.float32),
            "sin": np.sin(_ANGLES(s, d)).astype(np.float32),
        },
        _rotary,
        _torch_rotary,
        _moves("bshd", "bshd"),
    ),
    "rows of a table": Case(
        {"v": 32000, "n": 65536, "d": 1024},
        {"v": 9, "n": 7, "d": 16},
        lambda v, n, d: {"table": (v, d), "rows": _labels(n, v)},
        lambda tf, table, rows: tf.nn.embedding_lookup(table, rows),
        lambda t, table, rows: t.nn.functional.embedding(rows, table),
        _moves("nd", "nd"),
    ),
    "batch norm": Case(
        *_IMAGES,
        lambda n, h, w, c: {"x": (n, h, w, c), "g": (c,), "b": (c,)},
        _batch_norm,
        _torch_batch_norm,
        _moves("nhwc", "nhwc", "nhwc"),
        wide="g b",
    ),
    "dense layer": Case(
        *_DENSE,
        lambda m, n, k: {"x": (m, k), "w": (k, n), "b": (n,)},
        _dense,
        _torch_dense,
        _times(2, "mnk"),
        "TFLOP/s",
    ),
    "dense layer with gradient": Case(
        *_DENSE,
        lambda m, n, k: {"x": (m, k), "w": (k, n), "b": (n,)},
        _dense,
        _torch_dense,
        _times(6, "mnk"),
        "TFLOP/s",
        slopes="x w b",
    ),
    "convolution": Case(
        *_IMAGES,
        lambda n, h, w, c: {"x": (n, h, w, c), "filter": (3, 3, c, c), "b": (c,)},
        _convolution,
        _torch_convolution,
        _times(18, "nhwcc"),
        "TFLOP/s",
    ),
    "attention": Case(
        *_HEADS,
        lambda b, h, s, d: dict.fromkeys("qkv", (b, h, s, d)),
        _attention,
        _torch_attention,
        _times(2, "bhssd"),  # two products, of which causality leaves half
        "TFLOP/s",
    ),
    "attention with gradient": Case(
        *_HEADS,
        lambda b, h, s, d: dict.fromkeys("qkv", (b, h, s, d)),
        _attention,
        _torch_attention,
        _times(7, "bhssd"),
        "TFLOP/s",
        slopes="q k v",
    ),
    "linear cross-entropy": Case(
        {"n": 8192, "d": 1024, "v": 50304},
        {"n": 6, "d": 8, "v": 16},
        lambda n, d, v: {"x": (n, d), "w": (d, v), "labels": _labels(n, v)},
        _linear_cross_entropy,
        _torch_linear_cross_entropy,
        _times(6, "ndv"),
        "TFLOP/s",
        slopes="x w",
        count=1,
    ),
}


def main(paths: list[str]) -> int:
    """Write what PyTorch finds on the CPU for every tiny case, in float32, into an ``.npz`` file; for tests."""
    import torch

    found = {}
    for name, case in CASES.items():
        call, kept = torch_kernel(torch, torch.device("cpu"), case, True, lambda f: f, torch.float32)
        call()
        found |= {f"{name}/{number}": value.detach().numpy() for number, value in enumerate(kept)}
    np.savez(paths[0], **found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
