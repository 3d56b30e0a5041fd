"""Computation of a region in one small language: the terms of one iteration space, for compilers to print.

A :class:`RegionProgram` has *axes*, which span the space; *inputs*; *terms*, each of which is one value for every point of the
space, or for every point of some of its axes; and *outputs*. A term reads earlier terms, so that a program is printed from top to
bottom. There are no shapes in it: what lacks an axis is the same along it (a bias, a mean), and dims of size 1 are no axes.
:func:`graphdock.contracts.region_check.check_program` holds a program to these rules.

Terms, and what they mean:

* ``input``: an element of input ``value``, converted to the term's dtype. ``literal``: the number ``value``. ``index``: the
  place along axis ``value``, from 0; ``extent``: how many places it has; ``place``: the number of a point among those of the axes
  that it has, row by row. These three are int64. ``stream``: a word of stream ``value[0]`` of the region, a uint64 without axes:
  ``value[1]`` is one of :data:`WORDS`.
* one of :data:`PRIMITIVES`, over terms of one dtype, element by element.
* one of :data:`REDUCTIONS`, over the axes ``value``, which the term lacks.

Rules, the same for every compiler:

* **Halves**: float16 and bfloat16 are held in float32. They are widened where they are read, and rounded, to nearest and even,
  where an output is written; between, a compiler may round as often as it likes. A program says ``round`` where the user's own
  cast rounds.
* **Integers** wrap around. ``divide`` of integers cuts towards zero, ``floordiv`` rounds down, ``floormod`` has the divisor's
  sign; each is 0 where the divisor is 0. ``abs`` and ``neg`` of the lowest integer are that integer.
* **NaN**: ``maximum``, ``minimum``, ``max`` and ``min`` give NaN where any operand is NaN, ``sign`` of NaN is NaN. Comparisons
  with NaN are false, ``not_equal`` is true.
* **Order**: ``sum`` and ``prod`` may be added up in any fixed order, in the term's dtype at least: the same program over the same
  extents gives the same bits each time. ``sum`` and ``prod`` of nothing are 0 and 1, ``max`` and ``min`` of nothing are the
  lowest and highest of the dtype (for floating dtypes the infinities), ``any`` and ``all`` false and true.
* ``cast`` converts between integers (by wrap-around), between floating dtypes, from integers and bool to anything, and to bool by
  comparing with 0. From floating to integers there is no cast.
* **Updates**: an output that goes into a variable is written once per element, after every read of that element, also by terms of
  other outputs; what reads the variable sees what it held before the region.
* ``select(c, x, y)`` is x where c, and nothing of y matters there, a NaN neither.
* ``draw(key, key2, outer, iteration, ordinal, i)`` is number i of the uniform numbers in [0, 1) of a stream: Philox4x64-10 with
  the two words of the key and the counter (1 + block, outer, iteration, ordinal), made into numbers as ``RandomUniform`` says: the
  top 53 bits of word i as float64; as float32 the top 24 bits of half i, the low half of each word first. The first five have no
  axes: words of a stream of the region, or whatever says the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from graphdock.dtypes import DType
from graphdock.errors import InvalidArgumentError

__all__ = [
    "PRIMITIVES",
    "REDUCTIONS",
    "WORDS",
    "Axis",
    "Multiple",
    "Primitive",
    "RegionInput",
    "RegionOutput",
    "RegionProgram",
    "Span",
    "Term",
]

_FLOATING = frozenset({"float32", "float64"})
_INTEGER = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_NUMBER = _FLOATING | _INTEGER
_BOOL = frozenset({"bool"})


@dataclass(frozen=True, slots=True)
class Primitive:
    """One primitive.

    Attributes:
      arity: how many terms it reads.
      takes: names of the dtypes that it computes in: its operands have one of them, all the same (the first of ``select`` is bool).
      gives: name of the result's dtype; empty where it is that of the operands.
    """

    arity: int
    takes: frozenset[str]
    gives: str = ""


def _table(text: str, arity: int, takes: frozenset[str], gives: str = "") -> dict[str, Primitive]:
    return dict.fromkeys(text.split(), Primitive(arity, takes, gives))


#: Name -> what it takes. They mean what NumPy's function of that name does, but for the rules above; ``sigmoid`` is
#: 1 / (1 + exp(-x)) and ``rsqrt`` is 1 / sqrt(x).
PRIMITIVES: Mapping[str, Primitive] = MappingProxyType(
    {
        **_table(
            "acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor log log1p rint", 1, _FLOATING
        ),
        **_table("rsqrt sigmoid sin sinh sqrt tan tanh", 1, _FLOATING),
        **_table("isfinite isinf isnan", 1, _FLOATING, "bool"),
        **_table("abs neg sign", 1, _NUMBER),
        **_table("atan2 pow", 2, _FLOATING),
        **_table("add divide floordiv floormod maximum minimum mul sub", 2, _NUMBER),
        **_table("greater greater_equal less less_equal", 2, _NUMBER, "bool"),
        **_table("equal not_equal", 2, _NUMBER | _BOOL, "bool"),
        **_table("and or", 2, _BOOL),
        **_table("not", 1, _BOOL),
        **_table("select", 3, _NUMBER | _BOOL),
        # to the term's own dtype
        **_table("cast", 1, _NUMBER | _BOOL),
        # to float16 or bfloat16 (``value``), held in float32
        **_table("round", 1, frozenset({"float32"})),
        # to float32 or float64, the term's own dtype
        **_table("draw", 6, frozenset({"uint64"})),
    }
)

#: Name -> dtypes that it reduces.
REDUCTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {**dict.fromkeys(("sum", "prod", "max", "min"), _NUMBER), **dict.fromkeys(("any", "all"), _BOOL)}
)

#: The words of a stream, as ``draw`` takes them.
WORDS = ("key", "key2", "outer", "iteration", "ordinal")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the space: its name in printed programs, and how long it is. Of a plan for any shape it is None."""

    name: str
    extent: int | None


@dataclass(frozen=True, slots=True)
class Multiple:
    """Stride that only the step knows: ``factor`` times the extents of ``axes``."""

    factor: int
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Dim of a part whose extent is unknown: the slice ``begin:end:step`` of dim ``dim`` of the tensor that it is a part of."""

    dim: int
    begin: int = 0
    end: int | None = None
    step: int = 1

    def extent(self, shape: Sequence[int]) -> int:
        """Length of it, where the tensor has this shape."""
        return len(range(shape[self.dim])[self.begin : self.end : self.step])


@dataclass(frozen=True, slots=True)
class RegionInput:
    """A tensor that the region reads.

    Attributes:
      source: number of the region's input (of ``Region.graph``); a tensor that is read along different axes stands here twice. A
        variable that is read and written is two: the value that was read, and its handle, whose terms alone see its memory.
      dtype: of its elements in memory. ``shape``: of what is read.
      dims: the axis of each dim, in any order; None for a dim of size 1, along which it is the same.
      alignment: its address is a multiple of so many bytes.
      dying: nothing reads it after the region, and it may be written over.
      indices: number of the input whose elements are places along its first dim, which has no axis then (a gather of rows): of
        int32 or int64, row by row without gaps. What is read has the axes of both. :meth:`RegionProgram.check_indices` says which
        places there are; a region that is given another one raises that error, and writes nothing. Another thread may write into
        a fed array after that: where a row is read its place is held to the tensor once more.
      strides: elements from place to place of each dim, of a part of a tensor or a transposed one; None where it lies row by row
        without gaps. ``offset``: elements before the first one. ``whole``: shape of the tensor, which the kernel gets.
      spans: of a part with dims of unknown extent, one for each dim: where in the tensor's shape its extent is found; None where
        it is known.
    """

    name: str
    source: int
    dtype: DType
    shape: tuple[int | None, ...]
    dims: tuple[int | None, ...]
    alignment: int = 1
    dying: bool = False
    strides: tuple[int | Multiple, ...] | None = None
    offset: int = 0
    whole: tuple[int | None, ...] = ()
    spans: tuple[Span | None, ...] = ()
    indices: int | None = None

    def lies(self, extents: Sequence[int | None]) -> tuple[int, ...] | None:
        """The strides, where the axes have these extents."""
        if self.strides is None:
            return None
        return tuple(
            [s if isinstance(s, int) else s.factor * math.prod(extents[a] or 0 for a in s.axes) for s in self.strides]
        )


@dataclass(frozen=True, slots=True)
class Term:
    """One value.

    Attributes:
      op: ``input``, ``literal``, ``index``, ``extent``, ``place``, ``stream``, a primitive or a reduction.
      dtype: bool, an integer, float32 or float64.
      args: numbers of the terms that it reads.
      axes: the axes along which it differs, in order.
      value: the literal; the number of the input; the axis of an index or extent; the axes of a reduction; the dtype's name of
      ``round``; number and word of a stream.
      origin: the user's operation.
    """

    op: str
    dtype: DType
    args: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    value: Any = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class RegionOutput:
    """A tensor that the region writes, row by row without gaps: one of its own, or a variable.

    Attributes:
      term: number of the term whose elements it gets.
      dtype: of its elements in memory: the term's, or a half of a float32.
      dims: the axis of each dim; None for a dim of size 1. An axis that the term lacks repeats it.
      inplace: numbers of the dying inputs of its dtype, shape and axes, whose memory it may take over once the kernel reads no more
        there.
      into: number of the region's input (of ``Region.graph``) that is the handle of the variable it writes; None for an output of
        the graph. These stand before all that go into variables.
    """

    name: str
    term: int
    dtype: DType
    shape: tuple[int | None, ...]
    dims: tuple[int | None, ...]
    inplace: tuple[int, ...] = ()
    into: int | None = None


@dataclass(frozen=True, slots=True)
class RegionProgram:
    """One region; ``str(program)`` prints it.

    Attributes:
      streams: names of the random streams that it is given (``Region.streams``).
    """

    name: str
    axes: tuple[Axis, ...]
    inputs: tuple[RegionInput, ...]
    terms: tuple[Term, ...]
    outputs: tuple[RegionOutput, ...]
    streams: tuple[str, ...] = ()

    @property
    def made(self) -> tuple[RegionOutput, ...]:
        """The outputs that are tensors of their own: those of ``Region.graph``, in order."""
        return tuple([o for o in self.outputs if o.into is None])

    def reduced(self) -> frozenset[int]:
        """The axes that any reduction goes over."""
        return frozenset(a for t in self.terms if t.op in REDUCTIONS for a in t.value)

    @property
    def draws(self) -> bool:
        """Return whether any term is a random number."""
        return any(t.op == "draw" for t in self.terms)

    @property
    def gathers(self) -> bool:
        """Return whether any input is read where another one says."""
        return any(i.indices is not None for i in self.inputs)

    def check_indices(self, arrays: Sequence[Any]) -> None:
        """Hold the indices of all gathers to the tensors that they say rows of.

        Args:
          arrays: one per input of the region (``RegionInput.source``).

        Raises:
          InvalidArgumentError: one is below 0, or not below the first dim; names it, and the user's operation.
        """
        for number, source in enumerate(self.inputs):
            if source.indices is None:
                continue
            indices, bound = arrays[self.inputs[source.indices].source], arrays[source.source].shape[0]
            for place in np.argwhere((indices < 0) | (indices >= bound))[:1]:
                at = "".join(f"[{i}]" for i in place)
                raise InvalidArgumentError(
                    f"indices{at} is {indices[tuple(place)]}, which is out of bounds for axis 0 of size {bound}",
                    expected=f"from 0 to {bound - 1}",
                    op=next((t.origin for t in self.terms if t.op == "input" and t.value == number), None),
                )

    def structure(self) -> tuple[Any, ...]:
        """Structure of the program, without extents and names: equal structures are computed by equal code."""
        return (
            len(self.axes),
            tuple(
                (
                    i.source,
                    i.dtype.name,
                    tuple(a for a in i.dims if a is not None),
                    i.strides,
                    i.offset,
                    i.whole,
                    i.spans,
                    i.indices,
                )
                for i in self.inputs
            ),
            tuple((t.op, t.dtype.name, t.args, t.axes, _literal(t)) for t in self.terms),
            tuple((o.term, o.dtype.name, tuple(a for a in o.dims if a is not None), o.into) for o in self.outputs),
        )

    def __str__(self) -> str:
        from graphdock.contracts.region_print import print_program

        return print_program(self)


def _literal(term: Term) -> Any:
    """The value in a form in which -0.0 and 0.0 differ and NaN equals itself."""
    return repr(term.value) if term.op == "literal" else term.value
