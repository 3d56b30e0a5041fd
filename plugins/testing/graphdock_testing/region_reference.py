"""Values of region programs, in NumPy: the reference that every region compiler is held against."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock import errors
from graphdock.contracts.ir import Region
from graphdock.contracts.kernel import Bound, BuildContext, KernelDef
from graphdock.contracts.loop_program import LoopBuffer, LoopCopy, LoopProgram, LoopRows, LoopStep
from graphdock.contracts.region import Arrangement, Claim, Refusal, RegionCompiler
from graphdock.contracts.region_program import REDUCTIONS, WORDS, RegionProgram, Term
from graphdock.dtypes import DType, as_dtype
from graphdock_opgen.formula_values import FUNCTIONS, INTEGERS

__all__ = ["ArrangingCompiler", "ReferenceCompiler", "evaluate", "evaluate_loop"]


class ReferenceCompiler(RegionCompiler):
    """Claims every region that it is offered, and evaluates its program: slow, and right.

    Attributes:
      programs_built: those of the regions, in the order in which they were built. ``loops_built``: those of loops.
    """

    name = "reference"
    device_type = "cpu"
    programs = True
    updates = True
    products = True
    parts = True
    loops = True
    histories = True
    unknown_dims = True
    gathers = True

    def __init__(self) -> None:
        self.programs_built: list[RegionProgram] = []
        self.loops_built: list[LoopProgram] = []

    def claim(self, candidate: Region) -> Claim | Refusal:
        nodes = [n for n in candidate.graph.nodes if n.verb != "constant" and n not in candidate.parts]
        return Claim(tuple(nodes), 0.0)

    def build(self, region: Region, ctx: BuildContext) -> Bound:
        if region.loop is not None:
            return self._build_loop(region.loop)
        program = region.program
        assert program is not None
        self.programs_built.append(program)
        count = len(region.graph.inputs)

        drawn = count + len(region.streams)

        fresh = any(o.mode.kind == "fresh" for o in ctx.outputs)

        def compute(*given: Any) -> Any:
            outs = iter(given[drawn:])
            made = evaluate(program, given[:count], given[count:drawn])
            if fresh:
                outs = iter(np.empty_like(value, order="C") for value in made)
            returned = []
            for out, value in zip(program.outputs, made, strict=True):
                target = next(outs) if out.into is None else given[out.into]
                target[...] = value
                returned += [target] if fresh and out.into is None else []
            return None if not returned else returned[0] if len(returned) == 1 else tuple(returned)

        return Bound(compute)

    def _build_loop(self, loop: LoopProgram) -> Bound:
        self.loops_built.append(loop)
        count = len(loop.given)

        def compute(*given: Any) -> Any:
            made: list[Any] = evaluate_loop(loop, given[:count])
            for i, target in enumerate(given[count:]):
                target[...] = made[i]
            left = made[len(given) - count :]  # histories, and in mode fresh all
            return None if not left else left[0] if len(left) == 1 else tuple(left)

        return Bound(compute)


class ArrangingCompiler(ReferenceCompiler):
    """The reference, which has the right matrix of a product turned, column by column, where nothing else reads it."""

    def arranged(self, region: Region) -> Mapping[int, Arrangement]:
        program, found = region.program, {}
        if program is not None:
            for node in region.graph.nodes:
                form = node.opdef.region
                if form is None or not form.space or node.inputs[1].node is not None:
                    continue
                shape, index = node.inputs[1].shape or (), region.graph.inputs.index(node.inputs[1])
                lies = [i.strides is None for i in program.inputs if i.source == index]
                if lies == [True] and len(shape) == 2 and None not in shape:
                    kernel = KernelDef("Arranged", "cpu", name="turned", build=lambda ctx: _turned)
                    found[index] = Arrangement("turned", tuple([n or 0 for n in shape[::-1]]), kernel, _turn)
        return found

    def build(self, region: Region, ctx: BuildContext) -> Bound:
        made, turned = super().build(region, ctx), sorted(region.arranged)

        def compute(*given: Any) -> Any:
            return made.compute(*[np.ascontiguousarray(a.T) if i in turned else a for i, a in enumerate(given)])

        return Bound(compute)


def _turn(array: np.ndarray, room: np.ndarray) -> None:
    np.copyto(room, array.T)


def _turned(array: np.ndarray, *out: np.ndarray) -> Any:
    return _turn(array, *out) if out else np.ascontiguousarray(array.T)


def evaluate_loop(loop: LoopProgram, arrays: Sequence[Any], check: Callable[[], object] = lambda: None) -> list[Any]:
    """The results of a loop, step by step, and behind them its histories, as lists.

    Args:
      arrays: one per buffer that it is given; for a history the sequence of its elements, which may be such sequences.
      check: called in each iteration; a kernel's raises where its step must stop (``BindContext.check``).

    Raises:
      InvalidArgumentError: it, or a loop within, reads histories of different lengths, or as rows one of another number of them.
    """
    held: dict[int, Any] = dict(zip(loop.given, arrays, strict=True))
    read = {number: held[number] for number in loop.scans}
    lengths = {len(history) for history in read.values()}
    if len(lengths) > 1:
        raise errors.InvalidArgumentError("a loop reads histories of different lengths", got=str(sorted(lengths)))
    left = min([*lengths, *([] if loop.limit is None else [loop.limit])], default=None)
    kept: list[list[Any]] = [[] for _ in loop.kept]
    held |= {i: b.value for i, b in enumerate(loop.buffers) if b.value is not None}
    held |= {v: held[i] for v, i in zip(loop.variables, loop.initial, strict=True)}

    def run(steps: Sequence[LoopStep]) -> None:
        begun: set[int] = set()
        for step in steps:
            inputs = [held[i] for i in step.inputs]
            if isinstance(step.program, LoopCopy):
                (number,) = step.outputs
                if number not in begun:  # what was there is another iteration's, or a loop variable
                    held[number] = np.empty(loop.buffers[number].shape, loop.buffers[number].dtype.np)
                    begun.add(number)
                _copy(step.program, inputs[0], held[number])
                continue
            if isinstance(step.program, LoopRows):
                (number,) = step.outputs
                held[number] = _rows(step.program, inputs[0], loop.buffers[number])
                continue
            nested = isinstance(step.program, LoopProgram)
            made = evaluate_loop(step.program, inputs, check) if nested else evaluate(step.program, inputs)  # type: ignore[arg-type]
            held.update(zip(step.outputs, made, strict=True))

    turns = 0
    filled = [(n, h) for n, h in read.items() if loop.buffers[n].dtype.kind != "V" or loop.buffers[n].depth]
    while True:
        check()
        run(loop.condition)
        if not held[loop.test].reshape(()) or turns == left:
            break
        turns += 1
        for number, history in filled:
            element, buffer = history[-turns], loop.buffers[number]
            held[number] = element if buffer.depth else np.asarray(element, buffer.dtype.np)
        run(loop.body)
        for history, (number, shape) in zip(kept, loop.kept, strict=True):
            if loop.buffers[number].depth and None in shape:
                rest = [d or 0 for d in shape[1:]]
                parts = [np.asarray(part).reshape(-1, *rest) for part in held[number]]
                empty_rows = np.empty((0, *rest), loop.buffers[number].dtype.np)
                history.append(np.concatenate([empty_rows, *parts]))
            elif loop.buffers[number].depth:
                history.append(held[number])
            else:
                empty = loop.buffers[number].dtype.kind == "V"
                history.append(None if empty else held[number].reshape(shape).copy())
        held |= dict(zip(loop.variables, [held[n] for n in loop.following], strict=True))
    results = [loop.variables[r] for r in loop.results]
    return [*(held[v].reshape(loop.buffers[v].shape) for v in results), *kept]


def _rows(rows: LoopRows, source: Any, made: LoopBuffer) -> Any:
    """The rows of a tensor as a history, or a history as a tensor."""
    if made.depth:
        held = [row.reshape(made.shape) for row in source.reshape(rows.count, *made.shape)]
    elif len(source) != rows.count:
        raise errors.InvalidArgumentError(
            "HistoryStack: another number of elements than expected", expected=str(rows.count), got=str(len(source))
        )
    else:
        held = list(source)
    held = held[::-1] if rows.backwards else held
    return held if made.depth else np.array(held, made.dtype.np).reshape(made.shape)


def _copy(copy: LoopCopy, source: np.ndarray, target: np.ndarray) -> None:
    size = source.itemsize
    flat = np.ascontiguousarray(source).reshape(-1)[copy.offset :]
    part = np.lib.stride_tricks.as_strided(flat, copy.shape, [size * step for step in copy.strides])
    into = target.reshape(-1)[copy.at :]
    np.lib.stride_tricks.as_strided(into, copy.shape, [size * step for step in copy.into])[...] = part


def evaluate(program: RegionProgram, arrays: Sequence[np.ndarray], streams: Sequence[Any] = ()) -> list[np.ndarray]:
    """The outputs of a program, term by term in the dtypes that it says.

    Args:
      arrays: one per input of the region (``RegionInput.source``), of the shapes and dtypes that the program says. They tell how
        long axes of unknown extent are.
      streams: one per stream, each with ``key`` and ``counter()`` as a kernel's stream.

    Nothing is rounded to a half between: a compiler that rounds differs by the half's rounding, times what follows.
    """
    values: list[np.ndarray] = []
    program.check_indices(arrays)
    program = _measured(program, arrays)
    words = [_words(stream) for stream in streams]
    with np.errstate(all="ignore"):
        for term in program.terms:
            values.append(np.asarray(_term(program, term, values, arrays, words)).astype(term.dtype.np, copy=False))
        return [_written(program, i, values) for i in range(len(program.outputs))]


def _measured(program: RegionProgram, arrays: Sequence[np.ndarray]) -> RegionProgram:
    """The program with the extents that its arrays have."""
    if all(a.extent is not None for a in program.axes):
        return program
    extents = [a.extent for a in program.axes]
    for source in program.inputs:
        whole = arrays[source.source].shape
        if source.strides is None:
            shape: Sequence[int | None] = whole
        else:
            spans = source.spans or (None,) * len(source.shape)
            shape = [n if s is None else s.extent(whole) for n, s in zip(source.shape, spans, strict=True)]
        for size, axis in zip(shape, source.dims, strict=True):
            if axis is not None:
                assert extents[axis] in (None, size), f"{source.name} is not as long as others along an axis"
                extents[axis] = size
    return replace(program, axes=tuple([replace(a, extent=n) for a, n in zip(program.axes, extents, strict=True)]))


def _words(stream: Any) -> dict[str, int]:
    ordinal, iteration, outer = stream.counter()
    return dict(zip(WORDS, (*stream.key, outer, iteration, ordinal), strict=True))


def _term(
    program: RegionProgram,
    term: Term,
    values: Sequence[np.ndarray],
    arrays: Sequence[np.ndarray] | Mapping[int, np.ndarray],
    words: Sequence[Mapping[str, int]],
) -> Any:
    rank = len(program.axes)
    match term.op:
        case "literal":
            return np.full((1,) * rank, term.value, term.dtype.np)
        case "extent":
            return np.full((1,) * rank, _extent(program, term.value), np.int64)
        case "stream":
            number, word = term.value
            return np.full((1,) * rank, words[number][word], np.uint64)
        case "place":
            shape = [_extent(program, a) if a in term.axes else 1 for a in range(rank)]
            return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
        case "index":
            shape = [1] * rank
            shape[term.value] = -1
            return np.arange(_extent(program, term.value), dtype=np.int64).reshape(shape)
        case "input":
            source = program.inputs[term.value]
            if source.indices is not None:
                by = program.inputs[source.indices]
                rows = np.take(arrays[source.source], arrays[by.source], 0)
                source, arrays = replace(source, dims=(*by.dims, *source.dims[1:])), {source.source: rows}
            shape = [1] * rank
            for axis in source.dims:
                if axis is not None:
                    shape[axis] = _extent(program, axis)
            dims = [1 if d is None else _extent(program, d) for d in source.dims]
            whole = np.ascontiguousarray(arrays[source.source])
            if (strides := source.lies([a.extent for a in program.axes])) is not None:
                steps = [step * whole.itemsize for step in strides]
                whole = np.lib.stride_tricks.as_strided(whole.reshape(-1)[source.offset :], dims, steps)
            held = whole.astype(term.dtype.np).reshape(dims)
            order = sorted(range(len(source.dims)), key=lambda i: -1 if (d := source.dims[i]) is None else d)
            return held.transpose(order).reshape(shape)
        case "round":
            return values[term.args[0]].astype(as_dtype(term.value).np).astype(np.float32)
        case "cast":
            (value,) = (values[a] for a in term.args)
            return value != 0 if term.dtype.is_bool else value.astype(term.dtype.np)
        case "draw":
            *stream, places = (values[a] for a in term.args)
            return _drawn([int(word.item()) for word in stream], places, term.dtype)
        case op if op in REDUCTIONS:
            return _reduced(op, values[term.args[0]], tuple(term.value), term.dtype)
    operands = [values[a] for a in term.args]
    table = INTEGERS if operands[-1].dtype.kind in "iu" and term.op in INTEGERS else FUNCTIONS
    return table[term.op](*operands)


def _drawn(stream: Sequence[int], places: np.ndarray, dtype: DType) -> np.ndarray:
    """Uniform numbers as NumPy's own generator makes them."""
    key, key2, outer, iteration, ordinal = stream
    bits = np.random.Philox(key=0)
    state = bits.state
    state["state"] = {
        "key": np.array([key, key2], np.uint64),
        "counter": np.array([0, outer, iteration, ordinal], np.uint64),
    }
    bits.state = state
    numbers = np.random.Generator(bits).random(int(places.max()) + 1, dtype=dtype.np)
    return np.asarray(numbers[places.astype(np.int64)])


def _reduced(op: str, value: np.ndarray, axes: tuple[int, ...], dtype: DType) -> np.ndarray:
    if op in ("any", "all"):
        return np.asarray(getattr(np, op)(value, axis=axes, keepdims=True))
    if op in ("sum", "prod"):
        wide = np.float64 if dtype.is_floating else dtype.np
        return np.asarray(getattr(np, op)(value, axis=axes, keepdims=True, dtype=wide)).astype(dtype.np)
    low, high = (-math.inf, math.inf) if dtype.is_floating else dtype.limits
    function: Any = np.max if op == "max" else np.min
    return np.asarray(function(value, axis=axes, keepdims=True, initial=low if op == "max" else high))


def _written(program: RegionProgram, number: int, values: Sequence[np.ndarray]) -> np.ndarray:
    out = program.outputs[number]
    space = [_extent(program, a) if a in out.dims else 1 for a in range(len(program.axes))]
    whole = np.broadcast_to(values[out.term], space).astype(out.dtype.np)
    return whole.reshape([1 if a is None else _extent(program, a) for a in out.dims])


def _extent(program: RegionProgram, axis: int) -> int:
    extent = program.axes[axis].extent
    assert extent is not None, "a program is evaluated for known extents"
    return extent
