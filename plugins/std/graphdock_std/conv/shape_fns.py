"""Shape rules of windows that slide over spatial dims: convolutions, pools and morphology.

A window of ``size`` elements, ``dilation`` apart, goes over a dim in steps of ``stride``. How often is a number where the dim is
one, and else a dim derived from it: the same for the same window over the same dim, so that a gradient is known to fit what it
is the gradient of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.ops import ShapeContext, symbolic

from graphdock_std.shape_support import Dims, known, shape_from, show


def windows(
    ctx: ShapeContext,
    size: Any,
    window: Any,
    stride: int,
    dilation: int,
    pads: tuple[int, int] | None,
    least: int | None = None,
) -> Any:
    """Return how often a window fits: an int, a symbol or None. ``pads`` are the elements added at both ends, None with
    padding SAME. ``least``: of how many windows a graph is made.

    Raises:
      ShapeError: the window is empty, or larger than what it goes over by a stride or more; there are fewer than ``least``.
    """
    ctx.at_least(window, 1, "a window of 0 elements goes nowhere")
    if pads is None:
        if known(size):
            return -(-size // stride)
        return size if stride == 1 else ctx.derived("windows, padded", size, stride)
    if not known(window):
        ctx.at_least(None, 0, "")  # for the step to prove: it may be larger than what it goes over
        return ctx.derived("windows", size, window, stride, dilation, *pads)
    span, added = (window - 1) * dilation + 1, sum(pads)
    if not known(size):
        if span - added == stride == 1:
            return size
        # a dim that is short of the window by less than a stride has no windows; TensorFlow draws the line there too
        ctx.at_least(size, span - 2 * stride + 1 - added, _short(span, "?", added))
        return ctx.derived("windows", size, window, stride, dilation, *pads)
    # as in TensorFlow a step may come upon an image that is a little too small, but no convolution or pool is made for one
    if size + added <= span - (1 if least and ctx.building else 2 * stride):
        raise ctx.fail(_short(span, size, added))
    return max(0, (size + added - span) // stride + 1)


def _short(span: int, size: Any, added: int) -> str:
    over = f"{size} and {added} of padding" if added else f"{size}"
    return f"the output size would be negative: a window of {span} elements over {over}"


def _per_dim(ctx: ShapeContext, name: str, rank: int) -> tuple[int, ...]:
    """An attribute with one positive number per dim."""
    values = tuple(ctx.attrs[name])
    if len(values) != rank:
        raise ctx.fail(f"{name} needs {rank} numbers, one per dim, but has {len(values)}: {list(values)}")
    if min(values) < 1:
        raise ctx.fail(f"{name} must be positive, but are {list(values)}")
    return values


def _pads(ctx: ShapeContext, rank: int) -> list[tuple[int, int] | None]:
    """Elements added before and after, per dim; None where the window and the dim decide (SAME)."""
    explicit = list(ctx.attrs.get("explicit_paddings", ()))
    if ctx.attrs["padding"] != "EXPLICIT":
        if explicit:
            raise ctx.fail(f"explicit_paddings {explicit} go with padding EXPLICIT, not with {ctx.attrs['padding']}")
        return [None if ctx.attrs["padding"] == "SAME" else (0, 0)] * rank
    if len(explicit) != 2 * rank:
        raise ctx.fail(f"explicit_paddings need {2 * rank} numbers, two per dim, but have {len(explicit)}: {explicit}")
    if min(explicit) < 0:
        raise ctx.fail(f"explicit_paddings must not be negative, but are {explicit}")
    return [(explicit[2 * i], explicit[2 * i + 1]) for i in range(rank)]


class _Layout:
    """Strides, dilations and paddings of a convolution by spatial dim, and where batch, channels and spatial dims are."""

    def __init__(self, ctx: ShapeContext, rank: int) -> None:
        self.ctx, self.rank = ctx, rank
        self.channel = rank - 1 if ctx.attrs.get("data_format", "NHWC").endswith("C") else 1
        self.spatial = [i for i in range(1, rank) if i != self.channel]
        strides = _per_dim(ctx, "strides", rank)
        spread = "rates" if "rates" in ctx.attrs else "dilations"
        dilations = _per_dim(ctx, spread, rank)
        pads = _pads(ctx, rank)
        for name, values in (("strides", strides), (spread, dilations)):
            if (values[0], values[self.channel]) != (1, 1):
                raise ctx.fail(f"{name} {list(values)} must be 1 for batch and channels, dims 0 and {self.channel}")
        if pads[0] and any((*pads[0], *pads[self.channel])):  # type: ignore[misc]
            raise ctx.fail(f"explicit_paddings must be 0 for batch and channels, dims 0 and {self.channel}")
        self.strides, self.dilations = [strides[i] for i in self.spatial], [dilations[i] for i in self.spatial]
        self.pads = [pads[i] for i in self.spatial]

    def dims(self, name: str) -> tuple[Any, ...]:
        return self.ctx.shape(name) or (None,) * self.rank

    def sizes(self, name: str) -> tuple[Any, ...]:
        """The shape that a vector gives."""
        dims = shape_from(self.ctx, name)
        if dims is None:
            return (None,) * self.rank
        if len(dims) != self.rank:
            raise self.ctx.fail(f"{name} must hold {self.rank} sizes, but holds {len(dims)}: {show(dims)}")
        return dims

    def out(self, x: Sequence[Any], w: Sequence[Any], least: int | None = None) -> list[Any]:
        """The spatial dims of the output for those of an input and a filter."""
        found = []
        for at, window, stride, dilation, pads in zip(
            self.spatial, w, self.strides, self.dilations, self.pads, strict=False
        ):
            found.append(windows(self.ctx, _dim(x[at]), _dim(window), stride, dilation, pads, least))
        return found

    def joined(self, batch: Any, spatial: Sequence[Any], channels: Any) -> tuple[Any, ...]:
        return (batch, *spatial, channels) if self.channel == self.rank - 1 else (batch, channels, *spatial)

    def channels(self, x: Sequence[Any], w: Any, name: str = "input") -> None:
        have, want = _dim(x[self.channel]), _dim(w)
        self.ctx.equal(have, want, f"{name} has {have} channels, but the filter takes {want}")

    def fits(self, x: Sequence[Any], w: Sequence[Any], channels: Any, dy: Sequence[Any]) -> None:
        """Check that ``dy`` has the shape of the output."""
        want = self.joined(_dim(x[0]), self.out(x, w), channels)
        for at, (have, due) in enumerate(zip(dy, want, strict=True)):
            message = f"out_backprop has size {have} in dim {at}, but the output that it belongs to has {due}"
            self.ctx.equal(have, due, message)


def _dim(value: Any) -> Any:
    """An element of sizes that are fed is no dim: only the kernel can check it."""
    return value if value is None or known(value) or value.dim else None


def _product(ctx: ShapeContext, a: Any, b: Any) -> Any:
    if known(a) and known(b):
        return a * b
    return b if a == 1 else a if b == 1 else ctx.derived("product", a, b)


@symbolic
def conv(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter)``, the filter ``[*K, C, O]``.

    Raises:
      ShapeError: strides, dilations or paddings that fit no convolution, other channels, or a window larger than the padded input.
    """
    layout = _Layout(ctx, _rank(ctx))
    x, w = layout.dims("input"), layout.dims("filter")
    layout.channels(x, w[-2])
    return [layout.joined(x[0], layout.out(x, w, 1), w[-1])]


@symbolic
def fused_conv(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter, bias)``: what a convolution makes, twice.

    Raises:
      ShapeError: as of :func:`conv`; a bias of other than a number per channel.
    """
    layout = _Layout(ctx, 4)
    x, w, (count,) = layout.dims("input"), layout.dims("filter"), ctx.shape("bias") or (None,)
    layout.channels(x, w[-2])
    ctx.equal(_dim(count), _dim(w[-1]), f"bias has {count} numbers for {w[-1]} channels")
    return [layout.joined(x[0], layout.out(x, w, 1), w[-1])] * 2


def _rank(ctx: ShapeContext) -> int:
    """4 for the ops of images, 5 for those of volumes."""
    return 5 if "3D" in ctx.opdef.name else 4


@symbolic
def conv_backprop_input(ctx: ShapeContext) -> list[Dims]:
    """``(input_sizes, filter, out_backprop)``: the shape that ``input_sizes`` hold."""
    layout = _Layout(ctx, _rank(ctx))
    x, w = layout.sizes("input_sizes"), layout.dims("filter")
    layout.channels(x, w[-2], "input_sizes")
    layout.fits(x, w, w[-1], layout.dims("out_backprop"))
    return [x]


@symbolic
def conv_backprop_filter(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter_sizes, out_backprop)``: the shape that ``filter_sizes`` hold."""
    layout = _Layout(ctx, _rank(ctx))
    x, w = layout.dims("input"), layout.sizes("filter_sizes")
    layout.channels(x, w[-2])
    layout.fits(x, w, _dim(w[-1]), layout.dims("out_backprop"))
    return [w]


@symbolic
def depthwise(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter)``, the filter ``[*K, C, M]``: M outputs for each channel."""
    layout = _Layout(ctx, _rank(ctx))
    x, w = layout.dims("input"), layout.dims("filter")
    layout.channels(x, w[-2])
    return [layout.joined(x[0], layout.out(x, w, 1), _product(ctx, w[-2], w[-1]))]


@symbolic
def depthwise_backprop_input(ctx: ShapeContext) -> list[Dims]:
    layout = _Layout(ctx, _rank(ctx))
    x, w = layout.sizes("input_sizes"), layout.dims("filter")
    layout.channels(x, w[-2], "input_sizes")
    layout.fits(x, w, _product(ctx, w[-2], w[-1]), layout.dims("out_backprop"))
    return [x]


@symbolic
def depthwise_backprop_filter(ctx: ShapeContext) -> list[Dims]:
    layout = _Layout(ctx, _rank(ctx))
    x, w = layout.dims("input"), layout.sizes("filter_sizes")
    layout.channels(x, w[-2])
    layout.fits(x, w, _product(ctx, _dim(w[-2]), _dim(w[-1])), layout.dims("out_backprop"))
    return [w]


def _pooled(ctx: ShapeContext, x: Sequence[Any], least: int | None = None) -> tuple[Any, ...]:
    """The shape of a pool over ``x``: windows over every dim, those of batch and channels mostly of 1."""
    ksize, strides, pads = _per_dim(ctx, "ksize", len(x)), _per_dim(ctx, "strides", len(x)), _pads(ctx, len(x))
    if (ksize[0], strides[0]) != (1, 1):
        raise ctx.fail(
            f"a pool does not go over the batch: ksize {list(ksize)} and strides {list(strides)} begin with 1"
        )
    channel = len(x) - 1 if ctx.attrs.get("data_format", "NHWC").endswith("C") else 1
    return tuple(  # no images, or no channels, make no images: only spatial dims may be too small
        _dim(d)
        if at in (0, channel) and (k, s) == (1, 1) and p in (None, (0, 0))
        else windows(ctx, _dim(d), k, s, 1, p, least)
        for at, (d, k, s, p) in enumerate(zip(x, ksize, strides, pads, strict=True))
    )


def _same_dims(ctx: ShapeContext, name: str, want: Sequence[Any], of: str) -> None:
    have = ctx.shape(name)
    for at, (a, b) in enumerate(zip(have or (), want, strict=False)):
        ctx.equal(a, b, f"{name} has size {a} in dim {at}, but {of} has {b}")


@symbolic
def pool(ctx: ShapeContext) -> list[Dims]:
    """One input: as many elements per dim as there are windows.

    Raises:
      ShapeError: ksize, strides or paddings that fit no pool, or a window larger than the padded input.
    """
    return [_pooled(ctx, ctx.shape(ctx.opdef.inputs[0].name) or (None,) * _rank(ctx), 1)]


@symbolic
def pool_with_argmax(ctx: ShapeContext) -> list[Dims]:
    return pool(ctx) * 2


@symbolic
def pool_grad(ctx: ShapeContext) -> list[Dims]:
    """``(orig_input, orig_output, grad)``: the gradient has the shape of the one that it is spread over or gathered from."""
    x = ctx.shape("orig_input") or (None,) * _rank(ctx)
    y = _pooled(ctx, x)
    _same_dims(ctx, "orig_output", y, "a pool of orig_input")
    gathers = ctx.opdef.name.endswith("GradGrad")
    _same_dims(ctx, "grad", x if gathers else y, "orig_input" if gathers else "a pool of orig_input")
    return [y if gathers else x]


@symbolic
def pool_grad_of_shape(ctx: ShapeContext) -> list[Dims]:
    """``(orig_input_shape, grad)``: the shape that ``orig_input_shape`` holds."""
    x = shape_from(ctx, "orig_input_shape")
    rank = _rank(ctx)
    if x is None:
        return [(None,) * rank]
    if len(x) != rank:
        raise ctx.fail(f"orig_input_shape must hold {rank} sizes, but holds {len(x)}: {show(x)}")
    _same_dims(ctx, "grad", _pooled(ctx, x), "a pool of such an input")
    return [x]


@symbolic
def pool_grad_with_argmax(ctx: ShapeContext) -> list[Dims]:
    """``(input, grad, argmax)``: as :func:`pool_grad`, with indices in place of the pool."""
    x = ctx.shape("input") or (None,) * _rank(ctx)
    y = _pooled(ctx, x)
    gathers = ctx.opdef.name == "MaxPoolGradGradWithArgmax"
    _same_dims(ctx, "argmax", y, "a pool of the input")
    _same_dims(ctx, "grad", x if gathers else y, "the input" if gathers else "a pool of the input")
    return [y if gathers else x]


def _dilated(ctx: ShapeContext) -> tuple[_Layout, tuple[Any, ...], tuple[Any, ...]]:
    """Layout, input, and the filter ``[*K, C]`` of a dilation."""
    layout = _Layout(ctx, _rank(ctx))
    x, w = layout.dims("input"), ctx.shape("filter") or (None,) * 3
    layout.channels(x, w[-1])
    return layout, x, w


@symbolic
def dilation(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter)`` with strides and rates."""
    layout, x, w = _dilated(ctx)
    return [layout.joined(x[0], layout.out(x, w), w[-1] if x[-1] is None else x[-1])]


@symbolic
def dilation_backprop_input(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter, out_backprop)``: the shape of the input."""
    layout, x, w = _dilated(ctx)
    layout.fits(x, w, x[-1], layout.dims("out_backprop"))
    return [x]


@symbolic
def dilation_backprop_filter(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter, out_backprop)``: the shape of the filter."""
    layout, x, w = _dilated(ctx)
    layout.fits(x, w, x[-1], layout.dims("out_backprop"))
    return [w]


@symbolic
def dilation_pick(ctx: ShapeContext) -> list[Dims]:
    """``(input, filter, grad)``, grad of the shape of the input or of the filter: the shape of the dilation."""
    of = "filter" if "Filter" in ctx.opdef.name else "input"
    want, have = ctx.shape(of), ctx.shape("grad")
    if want is not None and have is not None and len(want) != len(have):
        raise ctx.fail(f"grad has rank {len(have)}, but the {of} has {len(want)}")
    _same_dims(ctx, "grad", want or (), f"the {of}")
    return dilation(ctx)
