"""The rules of region programs, checked."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.region_program import PRIMITIVES, REDUCTIONS, WORDS, RegionInput, RegionProgram, Term
from graphdock.dtypes import DType
from graphdock.errors import PlanError

__all__ = ["check_program"]

_HALVES = ("float16", "bfloat16")
_HELD = frozenset().union(*(p.takes for p in PRIMITIVES.values()))


def check_program(program: RegionProgram) -> None:
    """Raise PlanError at the first rule that a program breaks; the message names the part of it."""
    names = [a.name for a in program.axes]
    if len(set(names)) != len(names):
        raise _broken(program, "axes", "two axes have one name")
    for source in program.inputs:
        where = f"input {source.name}"
        gathered = source.indices is not None
        _check_dims(program, where, source.shape[gathered:], source.dims[gathered:], ordered=False)
        if gathered:
            _check_gather(program, where, source)
        if source.alignment < 1 or source.alignment & (source.alignment - 1):
            raise _broken(program, where, f"an alignment of {source.alignment} is no power of two")
        _check_part(program, where, source)
    for number, term in enumerate(program.terms):
        _check_term(program, number, term)
    for number, out in enumerate(program.outputs):
        where = f"output {out.name}"
        _check_dims(program, where, out.shape, out.dims)
        if not 0 <= out.term < len(program.terms):
            raise _broken(program, where, f"there is no term t{out.term}")
        term = program.terms[out.term]
        if held(out.dtype) != term.dtype.name:
            raise _broken(program, where, f"t{out.term} is {term.dtype}, which is not written as {out.dtype}")
        if not set(term.axes) <= set(out.dims):
            raise _broken(program, where, f"t{out.term} differs along an axis that the output has not")
        for i in out.inplace:
            source = program.inputs[i]
            if not source.dying or source.dtype != out.dtype or source.shape != out.shape or source.dims != out.dims:
                raise _broken(program, where, f"it can't take over the memory of {source.name}")
        _check_update(program, where, number)


def _check_gather(program: RegionProgram, where: str, source: RegionInput) -> None:
    """Hold rows that are read where another input says to their rules."""
    number = source.indices
    by = program.inputs[number] if number is not None and 0 <= number < len(program.inputs) else None
    if by is None or by.dtype.name not in ("int32", "int64") or by.indices is not None or by.strides is not None:
        raise _broken(
            program, where, f"input {number} gives no places of rows, which an int32 or int64 without gaps does"
        )
    if source.dims[:1] != (None,) or source.strides is not None or source.dying or by.dying:
        raise _broken(program, where, "rows are gathered along a dim without an axis, of what is whole and only read")
    if any(o.into == source.source for o in program.outputs):
        raise _broken(program, where, "rows are gathered from a variable that is written")


def _check_part(program: RegionProgram, where: str, source: RegionInput) -> None:
    """Hold a part to its rules: the tensor's shape tells each extent that is not known."""
    if source.strides is None:
        if source.spans:
            raise _broken(program, where, "it has spans, but no strides")
        return
    if len(source.strides) != len(source.shape) or source.dying:
        raise _broken(program, where, f"strides {source.strides} are not those of a part that is only read")
    spans = source.spans or (None,) * len(source.shape)
    dims = [s and source.whole[s.dim : s.dim + 1] for s in spans]
    if dims != [None if n is not None else (None,) for n in source.shape]:
        raise _broken(program, where, f"spans {source.spans} are not those of its dims of unknown extent")
    for stride in source.strides:
        if not isinstance(stride, int) and not set(stride.axes) <= set(source.dims):
            raise _broken(program, where, f"a stride is a multiple of axes that it has not: {stride}")


def _check_update(program: RegionProgram, where: str, number: int) -> None:
    """A variable is written by one output, and read where it is written."""
    out = program.outputs[number]
    if out.into is None:
        if any(o.into is not None for o in program.outputs[:number]):
            raise _broken(program, where, "it stands behind one that goes into a variable")
        return
    if out.inplace or out.into in [o.into for o in program.outputs[:number]]:
        raise _broken(program, where, "it is not the only one that goes into its variable")
    over = {program.inputs[i].source for o in program.outputs for i in o.inplace}
    if out.into in over:
        raise _broken(program, where, "its variable's memory is taken over")
    for source in program.inputs:
        if source.source == out.into and (source.dtype, source.shape, source.dims) != (out.dtype, out.shape, out.dims):
            raise _broken(
                program, where, f"its variable is read as {source.name} along other axes, or in another dtype"
            )


def held(dtype: DType) -> str:
    """Name of the dtype in which a region holds elements of a dtype."""
    return "float32" if dtype.name in _HALVES else dtype.name


def _check_dims(
    program: RegionProgram, where: str, shape: Sequence[int | None], dims: Sequence[int | None], ordered: bool = True
) -> None:
    if len(shape) != len(dims):
        raise _broken(program, where, f"shape {tuple(shape)} has not the {len(dims)} dims {tuple(dims)}")
    used = [d for d in dims if d is not None]
    wanted = sorted(set(used)) if ordered else list(dict.fromkeys(used))
    if used != wanted or any(not 0 <= d < len(program.axes) for d in used):
        raise _broken(program, where, f"dims {tuple(dims)} are not axes{' in their order' * ordered}")
    for size, axis in zip(shape, dims, strict=True):
        want = 1 if axis is None else program.axes[axis].extent
        if size != want:
            raise _broken(program, where, f"a dim of {size} stands on an axis of {want}")


def _check_term(program: RegionProgram, number: int, term: Term) -> None:
    where = f"term t{number} ({term.op})"
    if any(not 0 <= a < number for a in term.args):
        raise _broken(program, where, "it reads what does not stand before it")
    args = [program.terms[a] for a in term.args]
    axes = {a for t in args for a in t.axes}
    if term.dtype.name not in _HELD:
        raise _broken(program, where, f"a region holds no {term.dtype}")
    if list(term.axes) != sorted(set(term.axes)):
        raise _broken(program, where, "its axes are out of order")
    if term.op == "literal":
        if args or not isinstance(term.value, int | float):
            raise _broken(program, where, f"{term.value!r} is no number")
    elif term.op == "input":
        if args or not 0 <= term.value < len(program.inputs):
            raise _broken(program, where, f"there is no input {term.value}")
        source = program.inputs[term.value]
        axes = {a for a in source.dims if a is not None}
        if source.indices is not None:
            axes |= {a for a in program.inputs[source.indices].dims if a is not None}
        if held(source.dtype) != term.dtype.name:
            raise _broken(program, where, f"elements of {source.dtype} are not held in {term.dtype}")
    elif term.op in ("index", "extent"):
        axes = {term.value} if term.op == "index" else set()
        if args or not 0 <= term.value < len(program.axes) or term.dtype.name != "int64":
            raise _broken(program, where, "it is an int64 of one axis")
    elif term.op == "place":
        axes = set(term.axes)
        if args or not axes <= set(range(len(program.axes))) or term.dtype.name != "int64":
            raise _broken(program, where, "it is an int64 of some of the axes")
    elif term.op == "stream":
        number, word = term.value
        if args or not 0 <= number < len(program.streams) or word not in WORDS or term.dtype.name != "uint64":
            raise _broken(program, where, f"{term.value} is no word of a stream")
    elif term.op in REDUCTIONS:
        gone = set(term.value)
        if len(args) != 1 or args[0].dtype != term.dtype or term.dtype.name not in REDUCTIONS[term.op]:
            raise _broken(program, where, f"{term.op} gives no {term.dtype}")
        if not gone or not gone <= set(range(len(program.axes))) or list(term.value) != sorted(gone):
            raise _broken(program, where, f"{term.value} are not axes of the space in their order")
        if not gone <= axes:
            raise _broken(program, where, "it reduces along an axis along which its operand is the same")
        axes -= gone
    else:
        _check_primitive(program, where, term, args)
    if set(term.axes) != axes:
        raise _broken(program, where, f"it differs along axes {sorted(axes)}, not {sorted(term.axes)}")


def _check_primitive(program: RegionProgram, where: str, term: Term, args: Sequence[Term]) -> None:
    rule = PRIMITIVES.get(term.op)
    if rule is None:
        raise _broken(program, where, "there is no such primitive")
    if len(args) != rule.arity:
        raise _broken(program, where, f"it takes {rule.arity} terms, not {len(args)}")
    if term.op == "select" and args[0].dtype.name != "bool":
        raise _broken(program, where, "its first operand is a bool")
    operands = args[1:] if term.op == "select" else args
    dtype = operands[0].dtype
    if any(t.dtype != dtype for t in operands) or dtype.name not in rule.takes:
        raise _broken(program, where, f"it does not take {', '.join(str(t.dtype) for t in args)}")
    if term.op == "cast":
        if dtype.is_floating and term.dtype.is_integer:
            raise _broken(program, where, "floating values are not cast to integers")
    elif term.op == "draw":
        if not term.dtype.is_floating or any(t.axes for t in args[:5]):
            raise _broken(program, where, "it gives floating numbers of one stream, the same for the whole space")
    elif term.dtype.name != (rule.gives or dtype.name):
        raise _broken(program, where, f"of {dtype} it gives no {term.dtype}")
    if term.op == "round" and term.value not in _HALVES:
        raise _broken(program, where, f"it rounds to {' or '.join(_HALVES)}, not to {term.value!r}")


def _broken(program: RegionProgram, where: str, what: str) -> PlanError:
    return PlanError(f"region {program.name}, {where}: {what}")
