"""Terms with their dtypes: every operator of a formula as a primitive over terms of one dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from graphdock.contracts.region_program import PRIMITIVES, REDUCTIONS, WORDS, Term
from graphdock.dtypes import DType, as_dtype

__all__ = ["NotInRegion", "Operand", "Terms", "Unknown", "no_buffer"]

#: A term by its number, or a number of a formula that has no dtype of its own.
Operand: TypeAlias = "int | Number"

#: How many uniform numbers a half knows.
_STEPS = {"float16": 2.0**11, "bfloat16": 2.0**8}


class NotInRegion(Exception):
    """Error of a node that can't be said in a region; the message says why. Never leaves :mod:`graphdock_fusion.regions`."""


class Unknown(NotInRegion):
    """Error of a node that can't be said in a region because of dims that the plan does not know."""


def no_buffer(dtype: DType, shape: Sequence[int] | None) -> str:
    """Return why a tensor can't be a buffer of a loop."""
    if dtype.name in ("string", "variant", "resource"):
        more = ", whose variable a compiler with `updates` would read" if dtype.name == "resource" else ""
        return f"is of {dtype}{more}"
    return "has a shape that is not known" if shape is None else "has no elements"


class Number:
    """A number of a formula, or an attribute's; it takes the dtype of what it meets."""

    __slots__ = ("value",)

    def __init__(self, value: float | bool) -> None:
        self.value = value


class Terms:
    """The terms of one program under construction. Equal terms are one.

    Attributes:
      terms: in order. ``origin``: the user's operation whose terms are being made.
      named: numbers of those that were made, or found, since somebody set it.
    """

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.origin = ""
        self.named: dict[int, None] = {}
        self._known: dict[tuple[Any, ...], int] = {}

    def dtype(self, term: int) -> DType:
        return self.terms[term].dtype

    def add(
        self, op: str, dtype: DType, args: tuple[int, ...] = (), axes: tuple[int, ...] = (), value: Any = None
    ) -> int:
        """The number of the term, which is made where there is none like it."""
        key = (op, dtype.name, args, axes, repr(value) if op == "literal" else value)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.terms)
            self.terms.append(Term(op, dtype, args, axes, value, self.origin))
        self.named[number] = None
        return number

    def literal(self, value: float | bool, dtype: DType) -> int:
        """A number as a term. Raises NotInRegion where the dtype can't hold it."""
        if dtype.is_bool:
            return self.add("literal", dtype, value=bool(value))
        if dtype.is_integer:
            low, high = dtype.limits
            if value != int(value) or not low <= value <= high:
                raise NotInRegion(f"{value} is no {dtype}")
            return self.add("literal", dtype, value=int(value))
        return self.add("literal", dtype, value=float(value))

    def as_term(self, operand: Operand, dtype: DType) -> int:
        """An operand as a term of a dtype; floating and integer terms are converted, if need be."""
        if isinstance(operand, Number):
            return self.literal(operand.value, dtype)
        return operand if self.dtype(operand) == dtype else self.cast(operand, dtype)

    def cast(self, term: int, dtype: DType) -> int:
        mine = self.dtype(term)
        if mine == dtype:
            return term
        if dtype.is_integer and mine.is_floating:
            raise NotInRegion(f"a cast from {mine} to {dtype} follows the processor beyond the dtype's range")
        return self.add("cast", dtype, (term,), self.terms[term].axes)

    def rounded(self, term: int, half: str) -> int:
        return self.add("round", self.dtype(term), (term,), self.terms[term].axes, half)

    def apply(self, op: str, *operands: Operand) -> Operand:
        """A primitive over operands. Floating operands of several dtypes are computed in the widest.

        Raises NotInRegion where the primitive does not take them.
        """
        rule = PRIMITIVES[op]
        if op == "select":
            return self._select(*operands)
        dtype = self._common(operands, bool(rule.gives))
        if dtype is None:
            raise NotInRegion(f"{op} of numbers alone")
        if dtype.name not in rule.takes:
            raise NotInRegion(f"{op} of {dtype}")
        args = tuple([self.as_term(o, dtype) for o in operands])
        return self.add(op, as_dtype(rule.gives) if rule.gives else dtype, args, self.axes(args))

    def _select(self, condition: Operand, yes: Operand, no: Operand) -> Operand:
        if isinstance(condition, Number):
            return yes if condition.value else no
        if not self.dtype(condition).is_bool:
            raise NotInRegion(f"a condition of {self.dtype(condition)}")
        dtype = self._common((yes, no)) or as_dtype("float32")
        args = (condition, self.as_term(yes, dtype), self.as_term(no, dtype))
        return self.add("select", dtype, args, self.axes(args))

    def uniform(self, number: int, axes: tuple[int, ...], dtype: DType) -> int:
        """Uniform numbers of stream ``number`` of the region, one for each point of these axes, as ``RandomUniform`` has them.

        Of halves they are held in float32, and have as many bits as fit.
        """
        words = [self.add("stream", as_dtype("uint64"), value=(number, word)) for word in WORDS]
        place = self.add("place", as_dtype("int64"), (), axes)
        drawn = self.draw(as_dtype("float64" if dtype.name == "float64" else "float32"), words, place)
        steps = _STEPS.get(dtype.name)
        if steps is None:
            return drawn
        whole = self.apply("floor", self.apply("mul", drawn, Number(steps)))
        made = self.apply("mul", whole, Number(1 / steps))
        assert isinstance(made, int)
        return made

    def draw(self, dtype: DType, stream: Sequence[int], index: int) -> int:
        """Number ``index`` (of int64) of a stream: five terms of uint64 without axes, as :mod:`region_program` has them."""
        place = self.cast(index, as_dtype("uint64"))
        return self.add("draw", dtype, (*stream, place), self.terms[place].axes)

    def reduce(self, op: str, term: int, axes: tuple[int, ...]) -> int:
        """A reduction over axes of the space; axes along which the term is the same count as often as they are long."""
        dtype, mine = self.dtype(term), self.terms[term].axes
        if dtype.name not in REDUCTIONS[op]:
            raise NotInRegion(f"{op} of {dtype}")
        gone = tuple(a for a in axes if a in mine)
        same = [a for a in axes if a not in mine]
        if gone:
            term = self.add(op, dtype, (term,), tuple(a for a in mine if a not in gone), gone)
        if same and op == "prod":
            raise NotInRegion("a product along an axis without differences")
        if same and op == "sum":
            for axis in same:
                factor = self.cast(self.add("extent", as_dtype("int64"), value=axis), dtype)
                term = self.add("mul", dtype, (term, factor), self.terms[term].axes)
        return term

    def axes(self, args: tuple[int, ...]) -> tuple[int, ...]:
        """The axes of what reads these terms."""
        first = self.terms[args[0]].axes
        if all(self.terms[a].axes == first for a in args):
            return first
        return tuple(sorted({axis for a in args for axis in self.terms[a].axes}))

    def _common(self, operands: tuple[Operand, ...], compared: bool = False) -> DType | None:
        """The dtype of the operands that have one; the widest where they are floating, int64 of integers that are compared."""
        dtypes = {self.dtype(o) for o in operands if not isinstance(o, Number)}
        if len(dtypes) < 2:
            return next(iter(dtypes), None)
        if all(d.is_floating for d in dtypes):
            return as_dtype("float64")  # halves are held in float32, so these two are all there are
        if compared and all(d.is_integer and d.name != "uint64" for d in dtypes):
            return as_dtype("int64")
        raise NotInRegion(f"operands of {' and '.join(sorted(d.name for d in dtypes))}")
