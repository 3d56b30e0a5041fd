"""Primitives of region programs as instructions over vectors, and the reasons why others are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from graphdock.contracts import REDUCTIONS, DType, RegionInput, RegionOutput, RegionProgram, Term

from graphdock_llvm.emitter import HALVES, SCALARS, Emitter, scalar_constant
from graphdock_llvm.functions import FUNCTIONS
from graphdock_llvm.library import LIBRARY, pow_
from graphdock_llvm.products import products_of, refused, strides_of
from graphdock_llvm.target import converts_halves
from graphdock_llvm.vectors import strides

__all__ = [
    "DEAR",
    "combine",
    "emit",
    "horizontal",
    "identity",
    "columns_of",
    "is_flat",
    "nest_of",
    "rows_of",
    "unsupported",
    "what_forbids",
    "written_often",
]

#: Primitives that cost more than a visit of memory: what two loops over a row need is computed once and kept.
DEAR = frozenset("cos divide draw erf erfc exp expm1 log log1p pow rsqrt sigmoid sin sqrt tanh".split())

#: Elements of a space that is one row, at most, where some tensors lack some of its axes.
_ALONE = 1 << 17
#: Bytes of a row of results of a reduction over rows, at most.
_COLUMNS = 16 * 1024

_FLOATS: Mapping[str, str] = {"add": "fadd", "divide": "fdiv", "mul": "fmul", "sub": "fsub"}
_INTEGERS: Mapping[str, str] = {"add": "add", "mul": "mul", "sub": "sub"}
_ORDERS = {"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}
_SOURCES = frozenset(("input", "literal", "index", "extent", "place", "stream"))
_CHECKS = frozenset(("isfinite", "isinf", "isnan"))


def unsupported(program: RegionProgram, width: int) -> dict[int, str]:
    """Terms that are not emitted for vectors of so many lanes, with the reason of each."""
    products = products_of(program)
    found = {n: reason for n, p in products.items() if (reason := refused(program, p, width))}
    factors = {a for p in products for a in program.terms[p].args}
    apart = factors | products.keys()
    read = {a for n, t in enumerate(program.terms) if n not in apart for a in t.args} | {
        o.term for o in program.outputs
    }
    summed = {p.along for p in products.values()}
    rows, columns = rows_of(program), columns_of(program)
    for number, term in enumerate(program.terms):
        if columns.get(number):
            reason = _column(program, term, columns)
        else:
            reason = None if number in products else _unsupported(program, term)
        if number in columns and not columns[number] and (term.op in REDUCTIONS or set(rows) & set(term.axes)):
            reason = f"{term.op} goes along rows again, behind a reduction over them"
        if number in columns and any(o.term == number and set(rows) & set(o.dims) for o in program.outputs):
            reason = f"{term.op} is repeated along rows, behind a reduction over them"
        if number in read and number not in products and summed & set(term.axes):
            reason = f"{term.op} goes along the axis of a product"
        if number in read and term.op == "input":
            part = program.inputs[term.value]
            dims = [d for d in part.dims if d is not None]
            reason = reason if dims == sorted(dims) else f"{part.name} lies in another order"
            last = len(program.axes) - 1
            if part.strides is not None and last in dims and strides_of(part).get(last) != 1:
                reason = f"{part.name} has gaps in its rows"
        if (
            term.op == "input" and (part := program.inputs[term.value]).indices is not None
        ):  # checked though nothing reads it
            reason = reason or _gathered(program, part)
        if reason is not None:
            found[number] = reason
    if not converts_halves():
        halves = [n for n, t in enumerate(program.terms) if t.op == "input" and _is_half(program.inputs[t.value])]
        halves += [o.term for o in program.outputs if _is_half(o)]
        halves += [n for n, t in enumerate(program.terms) if "float16" in (t.dtype.name, t.value)]
        found.update(dict.fromkeys(halves, "the CPU has no instructions that convert float16"))
    return found


def _gathered(program: RegionProgram, part: RegionInput) -> str | None:
    """Reason why rows of a tensor are not read where indices say."""
    assert part.indices is not None
    last = len(program.axes) - 1
    if products_of(program) or nest_of(program):
        return f"rows of {part.name} are gathered beside a product, or a reduction over the last axis and others"
    if program.streams or any(i.offset for i in program.inputs):
        return f"rows of {part.name} are gathered beside draws, or parts of tensors"
    if part.shape[0] is None:
        return f"how many rows {part.name} has is not known"
    if last not in part.dims or last in program.inputs[part.indices].dims:
        return f"what is gathered of {part.name} are no rows along the last axis"
    dims = [d for d in (*program.inputs[part.indices].dims, *part.dims) if d is not None]
    return None if dims == sorted(dims) else f"rows of {part.name} lie in another order"


def _is_half(part: RegionInput | RegionOutput) -> bool:
    return part.dtype.name == "float16"


def _column(program: RegionProgram, term: Term, columns: Mapping[int, bool]) -> str | None:
    """Reason why a reduction over rows is not emitted: its results are kept in the first cache meanwhile."""
    last, argument = len(program.axes) - 1, program.terms[term.args[0]]
    if term.args[0] in columns or last not in argument.axes:
        return f"{term.op} goes over rows, of what has no columns or is reduced already"
    length = program.axes[last].extent
    return f"{term.op} goes over rows that are long" if (length or 0) * term.dtype.size > _COLUMNS else None


def _unsupported(program: RegionProgram, term: Term) -> str | None:
    if term.op in _SOURCES:
        return None
    if term.op in REDUCTIONS:
        last, whole = len(program.axes) - 1, tuple(range(len(program.axes)))
        if term.value not in ((last,), whole) and term.value != nest_of(program):
            return f"{term.op} goes over other axes than the last, or all"
        return None
    if term.op == "draw":
        return _drawn(program, term)
    dtype = program.terms[term.args[-1]].dtype if term.args else term.dtype
    known = term.op in ("and", "or", "not", "select", "cast", "equal", "not_equal") or term.op in _ORDERS
    if dtype.is_floating:
        known = known or term.op in FUNCTIONS[dtype.name] or term.op in _FLOATS or term.op in _CHECKS
        known = known or term.op in ("maximum", "minimum", "pow", "round") or term.op in LIBRARY[SCALARS[dtype.name]]
    elif dtype.name != "bool":
        known = known or term.op in _INTEGERS or term.op in ("maximum", "minimum", "neg", "abs")
    return None if known else f"there is no {term.op} of {dtype.name}"


def _drawn(program: RegionProgram, term: Term) -> str | None:
    """Reason why random numbers are not drawn: lanes of a vector take neighbouring ones."""
    places = program.terms[term.args[-1]]
    while places.op == "cast":
        places = program.terms[places.args[0]]
    if places.op != "place" or places.axes[-1:] != (len(program.axes) - 1,):
        return "it draws numbers that are not side by side"
    unknown = any(a.extent is None for a in program.axes)
    return "it draws numbers along axes of unknown extent" if unknown else None


def what_forbids(program: RegionProgram, width: int) -> str | None:
    """Reason why the program is not compiled; None where it is."""
    parts: list[RegionInput | RegionOutput] = [*program.inputs, *program.outputs]
    for part in parts:
        if part.dtype.name not in SCALARS and part.dtype.name not in HALVES:
            return f"{part.name} is of {part.dtype.name}"
    for out in program.outputs:
        if reason := written_often(program, out):
            return reason
    products = products_of(program)
    reduced = {t.value for n, t in enumerate(program.terms) if t.op in REDUCTIONS and n not in products}
    whole = tuple(range(len(program.axes)))
    if len(whole) > 1 and whole in reduced and not is_flat(program) and not nest_of(program):
        return "it reduces all axes, and reads along some"
    if reduced - {whole[-1:], rows_of(program)} and len(reduced) > 1:
        return "it reduces over two sets of axes"
    return next(iter(unsupported(program, width).values()), None)


def written_often(program: RegionProgram, out: RegionOutput) -> str | None:
    """Reason why an update can't go along rows: some of them would write it again. One that has no row is written behind them. What
    other rows would write again is not written at all where there are none of these."""
    nest, rows = set(nest_of(program)), set(rows_of(program))
    within = nest & set(out.dims)
    if within and (out.into is not None or None in [program.axes[a].extent for a in nest]) and within < nest:
        return f"{out.name} is written once, along a row of several axes of which it lacks some"
    there = rows & set(out.dims)
    if there and any(program.axes[a].extent is None for a in rows - there):
        return f"{out.name} is written once, along rows of which there may be none"
    return f"{out.name} is updated once, and rows are many" if out.into is not None and there and there < rows else None


def nest_of(program: RegionProgram) -> tuple[int, ...]:
    """The axes that a row is, where it is several: those of reductions over the last axis and others, with what they are not over
    between or before them. None where each row goes along the last axis, or the whole space is one, or so large that threads had
    better share what is reduced."""
    products = products_of(program)
    sets: set[tuple[int, ...]] = {t.value for t in program.terms if t.op in REDUCTIONS}
    if products or len(sets) != 1:
        return ()
    (over,) = sets
    if len(over) == 1 or over[-1] != len(program.axes) - 1:
        return ()
    if len(over) == len(program.axes):
        extents = [a.extent for a in program.axes]
        alone = None not in extents and math.prod(n or 0 for n in extents) <= _ALONE
        return over if alone and not is_flat(program) else ()
    return over


def rows_of(program: RegionProgram) -> tuple[int, ...]:
    """The axes of rows: all but those that a row is, and those that products are summed over."""
    summed = {p.along for p in products_of(program).values()}
    row = nest_of(program) or (len(program.axes) - 1,)
    return tuple([a for a in range(len(program.axes)) if a not in row and a not in summed])


def columns_of(program: RegionProgram) -> dict[int, bool]:
    """The terms that a reduction over all rows gives (True), and those that are computed of them."""
    rows, found = rows_of(program), dict[int, bool]()
    for number, term in enumerate(program.terms):
        if rows and term.op in REDUCTIONS and term.value == rows:
            found[number] = True
        elif any(a in found for a in term.args):
            found[number] = False
    return found


def is_flat(program: RegionProgram) -> bool:
    """Return whether what follows products, or all, is one row: each input and output has all axes in order, or none."""
    products = products_of(program)
    summed = {p.along for p in products.values()}
    whole = [a for a in range(len(program.axes)) if a not in summed]
    live: set[int] = set()
    stack = [o.term for o in program.outputs]
    while stack:
        number = stack.pop()
        if number not in live:
            live.add(number)
            stack.extend(program.terms[number].args if number not in products else ())
    terms = [program.terms[n] for n in live]
    tensors: list[RegionInput | RegionOutput] = [*(program.inputs[t.value] for t in terms if t.op == "input")]
    tensors += program.outputs
    parts = [[d for d in p.dims if d is not None] for p in tensors]
    places = any(t.op == "index" or t.op == "place" and list(t.axes) != whole for t in terms)
    cut = any(strides(p) is not None or isinstance(p, RegionInput) and p.indices is not None for p in tensors)
    partial = any(t.axes and list(t.axes) != whole for t in terms)
    return not places and not partial and not cut and all(p in ([], whole) for p in parts)


def emit(e: Emitter, program: RegionProgram, term: Term, args: Sequence[str]) -> str:
    """A primitive of values that are there."""
    dtype = program.terms[term.args[-1]].dtype
    type_ = e.of(dtype)
    if term.op == "select":
        return e.select(args[0], type_, args[1], args[2])
    if term.op in ("and", "or"):
        return e.binary(term.op, type_, *args)
    if term.op == "not":
        return e.binary("xor", type_, args[0], e.constant("i1", True))
    if term.op == "cast":
        return _cast(e, dtype, term.dtype, args[0])
    if term.op == "round":
        return e.widen(term.value, e.narrow(term.value, args[0]))
    if dtype.is_floating:
        return _floating(e, term.op, dtype, args)
    return _integer(e, term.op, dtype, args)


def _floating(e: Emitter, op: str, dtype: DType, args: Sequence[str]) -> str:
    scalar, type_ = SCALARS[dtype.name], e.of(dtype)
    if op in _FLOATS:
        return e.binary(_FLOATS[op], type_, *args)
    if op in ("maximum", "minimum"):
        return e.math(op, scalar, *args)
    if op in _ORDERS or op in ("equal", "not_equal"):
        how = {"equal": "oeq", "not_equal": "une"}.get(op) or f"o{_ORDERS[op]}"
        return e.value(f"fcmp {how} {type_} {args[0]}, {args[1]}")
    if op == "isnan":
        return e.value(f"fcmp uno {type_} {args[0]}, {args[0]}")
    if op in _CHECKS:
        size = e.math("fabs", scalar, args[0])
        how = "oeq" if op == "isinf" else "olt"
        return e.value(f"fcmp {how} {type_} {size}, {e.constant(scalar, math.inf)}")
    if op == "pow":
        return pow_(e, scalar, *args)
    if op in LIBRARY[scalar]:
        return LIBRARY[scalar][op](e, scalar, args[0])
    return FUNCTIONS[dtype.name][op](e, args[0])


def _integer(e: Emitter, op: str, dtype: DType, args: Sequence[str]) -> str:
    scalar, type_ = SCALARS[dtype.name], e.of(dtype)
    sign = "u" if dtype.name[0] in "ub" else "s"
    if op in _INTEGERS:
        return e.binary(_INTEGERS[op], type_, *args)
    if op in ("maximum", "minimum"):
        return e.math(f"{sign}{op[:3]}", scalar, *args)
    if op == "neg":
        return e.binary("sub", type_, "zeroinitializer", args[0])
    if op == "abs":
        if sign == "u":
            return args[0]
        negative = e.value(f"icmp slt {type_} {args[0]}, zeroinitializer")
        return e.select(negative, type_, e.binary("sub", type_, "zeroinitializer", args[0]), args[0])
    how = {"equal": "eq", "not_equal": "ne"}.get(op) or f"{sign}{_ORDERS[op]}"
    return e.value(f"icmp {how} {type_} {args[0]}, {args[1]}")


def _cast(e: Emitter, source: DType, target: DType, value: str) -> str:
    if source == target:
        return value
    from_, to = e.of(source), e.of(target)
    if target.name == "bool":
        return e.value(f"{'fcmp une' if source.is_floating else 'icmp ne'} {from_} {value}, zeroinitializer")
    unsigned = source.name[0] in "ub"
    if source.is_floating:
        return e.convert("fpext" if target.size > source.size else "fptrunc", from_, value, to)
    if target.is_floating:
        return e.convert("uitofp" if unsigned else "sitofp", from_, value, to)
    narrower = source.name != "bool" and target.size <= source.size
    if narrower:
        return value if target.size == source.size else e.convert("trunc", from_, value, to)
    return e.convert("zext" if unsigned else "sext", from_, value, to)


# -- reductions


def identity(term: Term) -> float | int | bool:
    """What a reduction of nothing gives."""
    if term.op in ("sum", "any"):
        return 0
    if term.op in ("prod", "all"):
        return 1
    if term.dtype.is_floating:
        return -math.inf if term.op == "max" else math.inf
    bits = term.dtype.size * 8
    signed = term.dtype.name[0] == "i"
    lowest = -(1 << (bits - 1)) if signed else 0
    return lowest if term.op == "max" else lowest + (1 << bits) - 1


def combine(e: Emitter, term: Term, accumulator: str, value: str) -> str:
    """The accumulator with one more vector."""
    scalar, type_ = SCALARS[term.dtype.name], e.of(term.dtype)
    if term.op in ("any", "all"):
        return e.binary("or" if term.op == "any" else "and", type_, accumulator, value)
    if term.op in ("sum", "prod"):
        word = "add" if term.op == "sum" else "mul"
        return e.binary(("f" if term.dtype.is_floating else "") + word, type_, accumulator, value)
    word = f"{term.op}imum" if term.dtype.is_floating else f"{'u' if term.dtype.name[0] == 'u' else 's'}{term.op}"
    return e.math(word, scalar, accumulator, value)


def horizontal(e: Emitter, term: Term, accumulator: str) -> str:
    """The lanes of an accumulator as one, in every lane."""
    scalar, type_ = SCALARS[term.dtype.name], e.of(term.dtype)
    floating, over = term.dtype.is_floating, e.overload(scalar)
    if term.op in ("sum", "prod") and floating:
        word, start = ("fadd", -0.0) if term.op == "sum" else ("fmul", 1.0)
        args = ((scalar, scalar_constant(scalar, start)), (type_, accumulator))
        return e.broadcast(scalar, e.call(f"llvm.vector.reduce.{word}.{over}", scalar, *args, flags="reassoc "))
    signed = "u" if term.dtype.name[0] == "u" else "s"
    word = {"sum": "add", "prod": "mul", "any": "or", "all": "and"}.get(term.op) or (
        f"f{term.op}imum" if floating else f"{signed}{term.op}"
    )
    return e.broadcast(scalar, e.call(f"llvm.vector.reduce.{word}.{over}", scalar, (type_, accumulator)))
