"""Convolutions of images and their gradients, channels last, as products of gathered rows; of any number of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import (
    FRESH,
    BindContext,
    KernelDef,
    KernelRefused,
    Native,
    PlanNode,
    PrepareContext,
    Prepared,
    Value,
    errors,
)

from graphdock_llvm.batches import Works, images_of
from graphdock_llvm.convolutions import Convolution, by_filter, by_input, convolution, forward
from graphdock_llvm.extents import bind_any
from graphdock_llvm.gathered import Work
from graphdock_llvm.gathered_text import text
from graphdock_llvm.launch import address_of, prepared
from graphdock_llvm.native import chain
from graphdock_llvm.target import width

__all__ = ["KERNELS"]

#: Elements of a tensor, at most.
_MOST = 1 << 31
#: Channels of images and of what is made of them, and multiplications without it, from which on a transform saves more than
#: it costs.
_TRANSFORMED, _MANY = 128, 3 << 28


@dataclass(frozen=True, slots=True)
class _Form:
    """Op over images and a filter.

    Attributes:
      places: of the images, the filter and what is made of both, among inputs and the output.
      make: the work of a layer; None where its channels can't be cut.
    """

    op: str
    places: tuple[int, int, int]
    make: Callable[[Convolution], Work | None]

    def values(self, node: PlanNode) -> list[Value]:
        """The images, the filter, and what is made of both."""
        values = (*node.inputs, node.outputs[0])
        return [values[place] for place in self.places]

    def batches(self, node: PlanNode) -> list[int]:
        """Numbers of the inputs that hold images."""
        return [place for place in (self.places[0], self.places[2]) if place < len(node.inputs)]

    def work(self, node: PlanNode, images: int) -> Work | None:
        """Work for so many images."""
        x, w, y = ([d or 0 for d in value.shape or ()] for value in self.values(node))
        return self.make(convolution((images, *x[1:]), w, (images, *y[1:]), node.attrs))

    def largest(self, node: PlanNode, images: int) -> int:
        """Elements of the largest tensor, for so many images."""
        x, w, y = ([d or 0 for d in value.shape or ()] for value in self.values(node))
        return max(math.prod(w), images * max(math.prod(x[1:]), math.prod(y[1:])))

    def why_not(self, node: PlanNode) -> str | None:
        """Reason why a node is not computed here; None where it is."""
        values = self.values(node)
        x, w, y = (value.shape for value in values)
        if x is None or w is None or y is None:
            return "its shapes are not known"
        if None in (*x[1:], *w, *y[1:]):
            return "the sides of its images or of its filter are not known"
        if 0 in (*x, *w, *y):
            return "it has no elements"
        if node.attrs["data_format"] != "NHWC":
            return "its channels are not last"
        if self.largest(node, max(1, x[0] or 0)) >= _MOST:
            return "a tensor has 2^31 elements or more"
        if None in (x[0], y[0]) and node.outputs[0] is values[0] and not _as_many(*values[::2]):
            return "how many images it makes is not known"
        if values[0] is node.outputs[0] and 2 * (x[3] or 0) < width():
            return "its images' channels are few: vectors would be mostly empty"
        many = None in (x[0], y[0]) or math.prod(d or 0 for d in (*w, *y[:3])) >= _MANY
        if many and self._transforms(node, w):
            return "a transform of its images saves more where they are many"
        return None if self.work(node, x[0] or y[0] or 1) is not None else "its channels have no small divisor"

    def _transforms(self, node: PlanNode, window: Sequence[int | None]) -> bool:
        """Return whether the cpu's kernel has Winograd's method for a layer of many positions."""
        one = all(node.attrs[name][i] == 1 for name in ("strides", "dilations") for i in (1, 2))
        return one and tuple(window[:2]) == (3, 3) and min(d or 0 for d in window[2:]) >= _TRANSFORMED


def _as_many(a: Value, b: Value) -> bool:
    """Return whether the plan knows that two tensors have as many images."""
    if a.shape is None or b.shape is None or None not in (a.shape[0], b.shape[0]):
        return True
    return isinstance(a.extent, tuple) and isinstance(b.extent, tuple) and a.extent[0] == b.extent[0]


def _prepare(form: _Form, ctx: PrepareContext) -> Prepared:
    node = ctx.node
    why = form.why_not(node)
    if why:
        raise KernelRefused(why)
    images = [value.shape[0] for value in (form.values(node)[0], form.values(node)[2]) if value.shape]
    if None not in images:
        work = form.work(node, images[0] or 0)
        assert work is not None
        return prepared(ctx, work)
    source = text(width())
    native = Native(address_of(ctx, source), chain, sized=partial(_Images, form, ctx))
    bind = partial(_bind, form, node, native)
    return Prepared(bind, native=native, source=lambda: source)


class _Images(Works):
    """Numbers of a layer's calls, of which the plan does not know how many images they have."""

    def __init__(self, form: _Form, ctx: PrepareContext) -> None:
        super().__init__(ctx)
        self._form = form

    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        form, node, batches = self._form, self._node, self._form.batches(self._node)
        self.left = False
        images = images_of([node.inputs[i] for i in batches], [shapes[i] for i in batches])
        self.left = not images or form.largest(node, images) >= _MOST
        work = None if self.left else form.work(node, images)
        if work is None:
            raise errors.ShapeError(f"{node.name} is computed in parts", got=str(list(shapes)))
        return self.tell([work], _made(form, node, images))


def _made(form: _Form, node: PlanNode, images: int) -> tuple[int, ...]:
    """The shape of what a node makes of so many images."""
    shape = tuple([d or 0 for d in node.outputs[0].shape or ()])
    return (images, *shape[1:]) if form.places[1] != 3 else shape


def _bind(form: _Form, node: PlanNode, native: Native, ctx: BindContext) -> Callable[..., Any]:
    """The kernel of an instance."""
    fresh = replace(ctx, outputs=tuple([replace(out, mode=FRESH) for out in ctx.outputs]))

    def parts(*args: Any) -> Any:
        """Result for no images, or for so many that a tensor of them is too large, which is made in halves."""
        batches = form.batches(node)
        images = len(args[batches[0]])
        if not images:
            return np.zeros(_made(form, node, 0), np.float32)
        cuts = slice(None, images // 2), slice(images // 2, None)
        made = [part(*[a[its] if i in batches else a for i, a in enumerate(args)]) for its in cuts]
        return np.concatenate(made) if form.places[1] != 3 else made[0] + made[1]

    part: Callable[..., Any] = bind_any(len(node.inputs), 1, native, fresh, otherwise=parts)
    return bind_any(len(node.inputs), 1, native, ctx, otherwise=parts)


_FORMS = (
    _Form("Conv2D", (0, 1, 2), lambda c: forward(c, 3)),
    _Form("Conv2DBackpropInput", (3, 1, 2), by_input),
    _Form("Conv2DBackpropFilter", (0, 3, 2), by_filter),
)
KERNELS = [
    KernelDef(form.op, "cpu", prepare=partial(_prepare, form), types={"T": ("float32",)}, check=form.why_not)
    for form in _FORMS
]
