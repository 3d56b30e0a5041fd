"""Kernels that are made for the shapes of their inputs and for what small host inputs hold, such as the size of an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext

from graphdock_cpu.kernels.shaped import KEPT, Made, Shape

__all__ = ["Make", "Shapes", "Values", "bind"]

#: What the host inputs hold, by index of the input.
Values = dict[int, tuple[int, ...]]
Make = Callable[[BuildContext, Sequence[Shape], Values], Made]
Shapes = Callable[[BuildContext, Sequence[Shape], Values], Sequence[Shape]]


def bind(make: Make, outputs: Shapes, *hosts: int) -> Callable[[BuildContext], Bound]:
    """The ``build`` of a kernel ``compute(*inputs, *outputs, *scratch)`` made for shapes and for integers of ``hosts``.

    ``outputs`` gives the shapes of the outputs, and raises where what the host inputs hold makes none.
    """

    def build(ctx: BuildContext) -> Bound:
        shapes = [i.shape for i in ctx.inputs]
        constants = {i: ctx.inputs[i].value for i in hosts}
        settled = all(s is not None and None not in s for s in shapes) and all(
            v is not None for v in constants.values()
        )
        if settled and not ctx.fresh:
            values = {i: _integers(v) for i, v in constants.items()}
            compute, scratch = make(ctx, [tuple(s or ()) for s in shapes], values)
            return Bound(compute, scratch=scratch)
        count = len(ctx.inputs)
        makes: dict[Any, tuple[Made, Sequence[Shape]]] = {}

        def run(*args: Any) -> Any:
            inputs, planned = args[:count], args[count:]
            found = [a.shape for a in inputs]
            values = {i: _integers(inputs[i]) for i in hosts}
            key = (*found, *values.values())
            if key not in makes:
                if len(makes) >= KEPT:
                    makes.clear()
                made_shapes = outputs(ctx, found, values)
                makes[key] = make(ctx, found, values), made_shapes
            (compute, scratch), made_shapes = makes[key]
            outs = planned or tuple(np.empty(s, o.dtype.np) for s, o in zip(made_shapes, ctx.outputs, strict=True))
            compute(*inputs, *outs, *(np.empty(s.shape, s.dtype.np) for s in scratch))
            return outs[0] if len(outs) == 1 else outs

        return Bound(run)

    return build


def _integers(value: Any) -> tuple[int, ...]:
    return tuple(np.ravel(value).tolist())
