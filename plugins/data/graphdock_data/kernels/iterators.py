"""Kernels of iterators: begin one, take its next element, name it and find it by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_data.dataset.stages.stage import Function, Pipeline, Run
from graphdock_data.resources.iterator import DatasetIterator, find_iterator

__all__ = ["KERNELS"]


def _functions(ctx: BuildContext, pipeline: Pipeline) -> Mapping[Function, Any]:
    """What calls each function of a dataset."""
    made: dict[Function, Any] = {}
    for function in pipeline.functions:
        assert ctx.functions is not None
        made[function] = ctx.functions(function.body)
    return made


def _begin(ctx: BuildContext) -> Bound:
    pipeline = ctx.attr("dataset")
    functions = _functions(ctx, pipeline)
    return Bound(
        lambda iterator, *arrays: iterator.begin(pipeline, arrays, functions),
        retains=tuple(range(1, len(ctx.inputs))),
    )


def _get_next(ctx: BuildContext) -> Bound:
    pipeline = ctx.attr("dataset")
    if pipeline is None:
        return Bound(DatasetIterator.get_next)
    functions = _functions(ctx, pipeline)

    def compute(iterator: DatasetIterator, *arrays: Any) -> Any:
        if not iterator.begun:
            iterator.begin_once(pipeline, arrays, functions)
        return iterator.get_next()

    return Bound(compute)


def _to_string(ctx: BuildContext) -> Bound:
    pipeline = ctx.attr("dataset")
    functions = {} if pipeline is None else _functions(ctx, pipeline)

    def compute(iterator: DatasetIterator, *arrays: Any) -> Any:
        if pipeline is not None:
            iterator.begin_once(pipeline, arrays, functions)
        out = np.empty((), object)
        out[()] = iterator.handle
        return out

    return Bound(compute)


def _get_next_of(ctx: BuildContext) -> Bound:
    kinds, shapes = ctx.attr("output_types"), ctx.attr("output_shapes")

    def compute(handle: Any) -> Any:
        iterator = find_iterator(handle.item())
        iterator.check(kinds, shapes)
        return iterator.get_next()

    return Bound(compute)


def _reduce(ctx: BuildContext) -> Bound:
    pipeline = ctx.attr("dataset")
    functions = _functions(ctx, pipeline)

    def compute(*arrays: Any) -> Any:
        run = Run.of(pipeline, arrays, functions)
        try:
            made = [np.array(part) for part in next(pipeline.stage.iterate(run))]
        finally:
            run.close()
        return made[0] if len(made) == 1 else tuple(made)

    return Bound(compute)


KERNELS = [
    KernelDef("GraphdockReduceDataset", "host", _reduce, modes=("fresh",)),
    KernelDef("GraphdockMakeIterator", "host", _begin),
    KernelDef("GraphdockIteratorGetNext", "host", _get_next, modes=("fresh",)),
    KernelDef("GraphdockIteratorToStringHandle", "host", _to_string, modes=("fresh",)),
    KernelDef("GraphdockIteratorGetNextOf", "host", _get_next_of, modes=("fresh",)),
]
