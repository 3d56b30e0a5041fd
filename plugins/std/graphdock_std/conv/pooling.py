"""Public functions of pools. Names, argument names and defaults are TensorFlow 1's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.conv.window_args import channels_first, either, paddings, per_dim, per_spatial_dim
from graphdock_std.grad_support import static_shape

Word = Literal["SAME", "VALID"]


def _pool(op: str, value: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None) -> Any:
    rank = 5 if op.endswith("3D") else 4
    argument = "value" if op == "AvgPool" else "input"
    return _ops.apply_op(
        op,
        **{argument: value},
        ksize=per_dim(ksize, rank, data_format, "ksize"),
        strides=per_dim(strides, rank, data_format, "strides"),
        **paddings(padding, rank),
        data_format=data_format,
        name=name,
    )


def max_pool(
    value: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word | Sequence[Sequence[int]],
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> _ops.Tensor:
    """The largest element of each window over images.

    Args:
      value: tensor ``[batch, height, width, channels]``, or ``[batch, channels, height, width]`` with ``data_format="NCHW"``;
        ``input`` is its newer name.
      ksize, strides: size and step of the window: one number, one per spatial dim, or one per dim.
      padding: ``"SAME"``, ``"VALID"``, or a pair of numbers for each dim; padding never is the largest.

    Returns:
      A tensor of the same layout and dtype. Of equal elements the first gets the gradient.

    Raises:
      ShapeError: a window larger than the input, or over the batch.
      InvalidArgumentError: sizes, steps or paddings that fit no pool.
    """
    value = either("input", input, "value", value)
    return _pool("MaxPool", value, ksize, strides, padding, data_format, name or "MaxPool")


def avg_pool(
    value: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> _ops.Tensor:
    """The mean of each window over images, padding not counted; arguments as of :func:`max_pool`."""
    value = either("input", input, "value", value)
    return _pool("AvgPool", value, ksize, strides, padding, data_format, name or "AvgPool")


def max_pool2d(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word | Sequence[Sequence[int]],
    data_format: str = "NHWC",
    name: str | None = None,
) -> _ops.Tensor:
    """:func:`max_pool`, under its name by rank."""
    return _pool("MaxPool", input, ksize, strides, padding, data_format, name or "MaxPool2d")


def max_pool3d(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> _ops.Tensor:
    """The largest element of each window over volumes; arguments as of :func:`max_pool`."""
    return _pool("MaxPool3D", input, ksize, strides, padding, data_format, name or "MaxPool3D")


def avg_pool3d(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> _ops.Tensor:
    """The mean of each window over volumes, padding not counted; arguments as of :func:`max_pool`."""
    return _pool("AvgPool3D", input, ksize, strides, padding, data_format, name or "AvgPool3D")


def _sequence(
    op: str, what: str, value: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None
) -> Any:
    """A pool of sequences: of images of one row."""
    if data_format not in ("NWC", "NCW"):
        raise InvalidArgumentError("no such data_format", expected="NWC or NCW", got=repr(data_format))
    with _tf.name_scope(name or what):
        axis, image = (2, "NCHW") if channels_first(data_format) else (1, "NHWC")
        window, steps = (per_dim(v, 3, data_format, n) for v, n in ((ksize, "ksize"), (strides, "strides")))
        for numbers in (window, steps):
            numbers.insert(axis, 1)
        return _tf.squeeze(_pool(op, _tf.expand_dims(value, axis), window, steps, padding, image, None), [axis])


def max_pool1d(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word,
    data_format: str = "NWC",
    name: str | None = None,
) -> _ops.Tensor:
    """The largest element of each window over sequences ``[batch, width, channels]``; arguments as of :func:`max_pool`."""
    return _sequence("MaxPool", "MaxPool1d", input, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word,
    data_format: str = "NWC",
    name: str | None = None,
) -> _ops.Tensor:
    """The mean of each window over sequences ``[batch, width, channels]``; arguments as of :func:`max_pool`."""
    return _sequence("AvgPool", "AvgPool1D", input, ksize, strides, padding, data_format, name)


_BY_RANK: dict[tuple[str, int], Callable[..., Any]] = {
    ("MAX", 3): max_pool1d,
    ("MAX", 4): max_pool,
    ("MAX", 5): max_pool3d,
    ("AVG", 3): avg_pool1d,
    ("AVG", 4): avg_pool,
    ("AVG", 5): avg_pool3d,
}
_FORMATS = {3: "NWC", 4: "NHWC", 5: "NDHWC"}


def _of_rank(kind: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, name: Any) -> Any:
    input = _ops.convert_to_tensor(input)
    dims = static_shape(input)
    rank = len(dims) if dims is not None else len(data_format or ())
    if rank not in _FORMATS:
        raise InvalidArgumentError("a pool needs an input of rank 3, 4 or 5", got=str(input.shape))
    return _BY_RANK[kind, rank](input, ksize, strides, padding, data_format or _FORMATS[rank], name)


def max_pool_v2(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word | Sequence[Sequence[int]],
    data_format: str | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """:func:`max_pool` over as many spatial dims as the input has."""
    return _of_rank("MAX", input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word,
    data_format: str | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """:func:`avg_pool` over as many spatial dims as the input has."""
    return _of_rank("AVG", input, ksize, strides, padding, data_format, name)


def pool(
    input: TensorLike,
    window_shape: Sequence[int],
    pooling_type: Literal["MAX", "AVG"],
    padding: Word,
    dilation_rate: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sequence[int] | None = None,
) -> _ops.Tensor:
    """A pool over 1, 2 or 3 spatial dims.

    Args:
      window_shape: size of the window per spatial dim.
      dilation_rate: distance of the window's elements in the input per spatial dim, with padding VALID;
        ``dilations`` is its newer name.
      strides: step per spatial dim, at most the window's size; default: 1.

    Raises:
      InvalidArgumentError: strides above the window, both strides and dilations above 1, or dilations with padding SAME.
    """
    rates = either("dilations", dilations, "dilation_rate", dilation_rate, required=False)
    count = len(window_shape)
    if pooling_type not in ("MAX", "AVG") or count not in (1, 2, 3):
        raise InvalidArgumentError(f"there is no {count}-D {pooling_type} pool", expected="MAX or AVG over 1 to 3 dims")
    steps, spread = per_spatial_dim(strides, count, "strides"), per_spatial_dim(rates, count, "dilation_rate")
    if any(s > w for s, w in zip(steps, window_shape, strict=True)):
        raise InvalidArgumentError(
            "strides above window_shape are not supported", got=f"{steps} and {list(window_shape)}"
        )
    first = 2 if channels_first(data_format) else 1
    with _tf.name_scope(name or f"{pooling_type.lower()}_pool") as scope:
        input = _ops.convert_to_tensor(input)
        function = _BY_RANK[pooling_type, count + 2]
        layout = data_format or _FORMATS[count + 2]
        if max(spread) == 1:
            return function(input, list(window_shape), steps, padding, layout, scope)
        if padding == "SAME":
            raise InvalidArgumentError("a pool with dilations has no padding SAME", got=f"dilation_rate {spread}")
        if max(steps) > 1:
            raise InvalidArgumentError("strides and dilation_rate cannot both be above 1", got=f"{steps} and {spread}")
        return _dilated(pooling_type, input, list(window_shape), spread, first, scope)


def _dilated(kind: str, x: Any, window: list[int], spread: list[int], first: int, name: str) -> Any:
    """A pool of elements that lie ``spread`` apart: over slices, one for each element of the window."""
    dims = static_shape(x)
    if dims is None:
        raise InvalidArgumentError("a pool with dilations needs an input of known rank", got=str(x.shape))
    sizes = dims[first : first + len(spread)]
    reach = [(w - 1) * r for w, r in zip(window, spread, strict=True)]
    if any(n is not None and n <= m for n, m in zip(sizes, reach, strict=True)):
        raise InvalidArgumentError("the output size would be negative", got=f"window {window} over {list(sizes)}")
    if None in sizes:
        found = _ops.shape(x)[first : first + len(spread)]
        fits = _tf.Assert(
            _tf.reduce_all(found > reach), ["the output size would be negative: window", window, "over", found]
        )
        with _ops.control_dependencies([fits]):
            x = _ops.identity(x)
    parts = []
    for tap in itertools.product(*map(range, window)):
        index: list[Any] = [slice(None)] * len(dims)
        for i, (k, r, m) in enumerate(zip(tap, spread, reach, strict=True)):
            index[first + i] = slice(k * r, k * r - m or None)
        parts.append(x[tuple(index)])
    reduce: Callable[..., Any] = _tf.reduce_max if kind == "MAX" else _tf.reduce_mean
    return reduce(_tf.stack(parts), 0, name=name)


def max_pool_with_argmax(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Word,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:
    """The largest element of each window over images, and its index.

    Args:
      input: floating tensor ``[batch, height, width, channels]``.
      Targmax: dtype of the indices, int64 (the default) or int32; ``output_dtype`` is its newer name.
      include_batch_in_index: whether indices count from the first image of the batch, or each image's from itself.

    Returns:
      ``(output, argmax)``; an index is ``(y * width + x) * channels + channel``.

    Raises:
      InvalidArgumentError: another data_format than NHWC.
    """
    if data_format != "NHWC":
        raise InvalidArgumentError("max_pool_with_argmax takes channels last", expected="NHWC", got=repr(data_format))
    dtype = either("output_dtype", output_dtype, "Targmax", Targmax, required=False)
    return _ops.apply_op(
        "MaxPoolWithArgmax",
        input=input,
        ksize=per_dim(ksize, 4, data_format, "ksize"),
        strides=per_dim(strides, 4, data_format, "strides"),
        **paddings(padding, 4),
        include_batch_in_index=include_batch_in_index,
        Targmax=_tf.int64 if dtype is None else dtype,
        name=name,
    )
