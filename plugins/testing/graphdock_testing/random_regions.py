"""Random region programs with inputs for them: what every region compiler is held against, with the reference.

Values stay small and away from where functions are steep: a compiler that computes in another order differs by rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts.region_check import check_program, held
from graphdock.contracts.region_program import Axis, RegionInput, RegionOutput, RegionProgram
from graphdock.dtypes import DType, as_dtype
from graphdock_fusion.regions.typed import NotInRegion, Number, Terms

__all__ = ["random_region", "random_streams"]

_UNARY = ("abs", "atan", "cos", "erf", "neg", "sigmoid", "sin", "tanh")
#: They jump: of inputs only, which all compilers see alike.
_STEPS = ("ceil", "floor", "rint", "sign")
_BINARY = ("add", "maximum", "minimum", "mul", "sub")
_COMPARED = ("equal", "greater", "less", "less_equal", "not_equal")
_INTEGERS = ("add", "divide", "floordiv", "floormod", "maximum", "minimum", "mul", "sub")


def random_region(
    rng: np.random.Generator,
    extents: Sequence[int],
    reduced: Sequence[int] = (),
    dtypes: Sequence[str] = ("float32", "float32", "float16", "bfloat16", "int32", "bool"),
    size: int = 16,
    draws: int = 0,
) -> tuple[RegionProgram, list[np.ndarray]]:
    """A program of about ``size`` terms, and an array for each of its inputs.

    Args:
      extents: of the axes; none is 1.
      reduced: the axes that reductions go over, all of them at once; none reduces nothing.
      dtypes: of inputs, drawn from these; the first input has the first and every axis.
      draws: how many streams of random numbers it draws from besides; :func:`random_streams` makes those that it is given.

    Equal generators give equal programs. What reductions of floating values give is at most a few times larger than what goes in.
    """
    maker = _Maker(rng, tuple(extents), tuple(sorted(reduced)), [as_dtype(d) for d in dtypes])
    maker.enter(maker.dtypes[0], tuple(range(len(extents))))
    for _ in range(int(rng.integers(0, 3))):
        axes = tuple(a for a in range(len(extents)) if rng.random() < 0.6)
        maker.enter(maker.dtypes[int(rng.integers(len(dtypes)))], axes)
    for _ in range(draws):
        maker.draw()
        size += 20
    while len(maker.terms.terms) < size:
        maker.step()
    program = maker.finish()
    check_program(program)
    return program, maker.arrays


@dataclass
class _Stream:
    """A stream as kernels get it."""

    key: tuple[int, int]
    words: tuple[int, int, int]

    def counter(self) -> tuple[int, int, int]:
        return self.words


def random_streams(rng: np.random.Generator, program: RegionProgram) -> list[Any]:
    """A stream for each of a program's, as kernels get them, with any key and any counter."""
    return [_Stream((_word(rng), _word(rng)), (_word(rng), _word(rng), _word(rng))) for _ in program.streams]


def _word(rng: np.random.Generator) -> int:
    return int(rng.integers(2**64, dtype=np.uint64)) >> int(rng.integers(64))


class _Maker:
    def __init__(
        self, rng: np.random.Generator, extents: tuple[int, ...], reduced: tuple[int, ...], dtypes: Sequence[DType]
    ) -> None:
        self.rng, self.extents, self.reduced, self.dtypes = rng, extents, reduced, dtypes
        self.terms = Terms()
        self.inputs: list[RegionInput] = []
        self.arrays: list[np.ndarray] = []
        self.made: list[int] = []
        self.streams: list[str] = []

    def enter(self, dtype: DType, axes: tuple[int, ...]) -> None:
        number = len(self.inputs)
        shape = tuple(self.extents[a] for a in axes)
        if dtype.is_bool:
            array = self.rng.random(shape) < 0.5
        elif dtype.is_integer:
            array = self.rng.integers(0 if dtype.is_unsigned else -9, 10, shape).astype(dtype.np)
        else:
            array = np.asarray(self.rng.uniform(-2, 2, shape)).astype(dtype.np)
        self.inputs.append(RegionInput(f"x{number}", number, dtype, shape, axes, dtype.size))
        self.arrays.append(np.asarray(array))
        self.made.append(self.terms.add("input", as_dtype(held(dtype)), (), axes, number))

    def pick(self, floating: bool | None = None) -> int | None:
        """A term made so far, rather a late one; None where none is of the kind."""
        fit = [
            t
            for t in self.made
            if floating is None or self.terms.dtype(t).is_floating == floating and not self._bool(t)
        ]
        return fit[min(int(self.rng.integers(len(fit))) + int(self.rng.integers(3)), len(fit) - 1)] if fit else None

    def _bool(self, term: int) -> bool:
        return self.terms.dtype(term).is_bool

    def step(self) -> None:
        """One more operation, of whatever fits."""
        rng, terms, roll = self.rng, self.terms, float(self.rng.random())
        x = self.pick(floating=bool(rng.random() < 0.8))
        if x is None:
            x = self.pick(floating=True)
        assert x is not None
        dtype = terms.dtype(x)
        same = [t for t in self.made if terms.dtype(t) == dtype]
        y = same[int(rng.integers(len(same)))]
        try:
            if roll < 0.2 and self.reduced:
                self._reduce(x)
            elif roll < 0.4 and dtype.is_floating:
                self._keep(terms.apply(_UNARY[int(rng.integers(len(_UNARY)))], x))
            elif roll < 0.75:
                names = _BINARY if dtype.is_floating else _INTEGERS
                other = y if rng.random() < 0.7 else Number(int(rng.integers(1, 4)))
                self._keep(self._calmed(terms.apply(names[int(rng.integers(len(names)))], x, other)))
            elif roll < 0.85:
                self._jump(x, y)
            elif roll < 0.92:
                bools = [t for t in self.made if self._bool(t)]
                if len(bools) > 1:
                    self._keep(terms.apply("and" if rng.random() < 0.5 else "or", bools[0], bools[-1]))
                self._keep(terms.cast(x, as_dtype("float32")))
            elif dtype.is_floating:
                self._keep(terms.apply("divide", x, terms.apply("add", terms.apply("mul", y, y), Number(1))))
        except NotInRegion:
            pass  # that operator does not take this dtype: another roll

    def draw(self) -> None:
        """Numbers of a stream, one for each place of the space: of one that the program is given, or of one whose counter and key
        come in as inputs, or stand in the program."""
        kind = as_dtype("float64" if as_dtype("float64") in self.dtypes else "float32")
        if self.rng.random() < 0.5:
            axes = tuple(a for a in range(len(self.extents)) if self.rng.random() < 0.8)
            dtype = as_dtype("bfloat16") if kind.name == "float32" and self.rng.random() < 0.3 else kind
            self._keep(self.terms.uniform(len(self.streams), axes, dtype))
            self.streams.append(f"stream{len(self.streams)}")
            return
        stream = []
        for _ in range(5):
            word = _word(self.rng)
            if self.rng.random() < 0.5:
                stream.append(self.terms.literal(word, as_dtype("uint64")))
                continue
            number = len(self.inputs)
            self.inputs.append(RegionInput(f"x{number}", number, as_dtype("uint64"), (), (), 8))
            self.arrays.append(np.array(word, np.uint64))
            stream.append(self.terms.add("input", as_dtype("uint64"), (), (), number))
        whole = as_dtype("int64")
        place = self.terms.add("index", whole, (), (0,), 0)
        for axis in range(1, len(self.extents)):
            size = self.terms.literal(self.extents[axis], whole)
            place = self.terms.add("mul", whole, (place, size), self.terms.terms[place].axes)
            index = self.terms.add("index", whole, (), (axis,), axis)
            place = self.terms.add("add", whole, (place, index), self.terms.axes((place, index)))
        self._keep(self.terms.draw(kind, stream, place))

    def _jump(self, x: int, y: int) -> None:
        """A choice, or a rounding."""
        rng, terms = self.rng, self.terms
        entered = [t for t in self.made if terms.terms[t].op == "input" and not self._bool(t)]
        a = entered[int(rng.integers(len(entered)))]
        if terms.dtype(a).is_floating and rng.random() < 0.3:
            self._keep(terms.apply(_STEPS[int(rng.integers(len(_STEPS)))], a))
            return
        asked = terms.apply(_COMPARED[int(rng.integers(len(_COMPARED)))], a, Number(int(rng.integers(-1, 2))))
        self._keep(terms.apply("select", asked, x, y if rng.random() < 0.5 else Number(1)))

    def _calmed(self, term: int | Number) -> int | Number:
        """Products of products grow beyond any tolerance."""
        if isinstance(term, Number) or not self.terms.dtype(term).is_floating or self.terms.terms[term].op != "mul":
            return term
        return self.terms.apply("tanh", term)

    def _reduce(self, x: int) -> None:
        gone = tuple(a for a in self.reduced if a in self.terms.terms[x].axes)
        if not gone:
            return
        if self._bool(x):
            self._keep(self.terms.reduce("any" if self.rng.random() < 0.5 else "all", x, gone))
        elif self.rng.random() < 0.4:
            self._keep(self.terms.reduce("max" if self.rng.random() < 0.5 else "min", x, gone))
        elif self.terms.dtype(x).is_floating:
            count = 1
            for axis in gone:
                count *= self.extents[axis]
            self._keep(self.terms.apply("divide", self.terms.reduce("sum", x, gone), Number(float(count))))
        else:
            self._keep(self.terms.reduce("sum", x, gone))

    def _keep(self, term: int | Number) -> None:
        assert not isinstance(term, Number)
        self.made.append(term)

    def finish(self) -> RegionProgram:
        """One to three outputs: the last term, and others; float32 terms may be written as halves."""
        chosen = dict.fromkeys([self.made[-1], *(int(t) for t in self.rng.choice(self.made, 2))])
        outputs = []
        for number, term in enumerate(itertools.islice(chosen, int(self.rng.integers(1, 4)))):
            dtype, axes = self.terms.dtype(term), self.terms.terms[term].axes
            if dtype.name == "float32" and self.rng.random() < 0.3:
                dtype = as_dtype("float16" if self.rng.random() < 0.5 else "bfloat16")
            outputs.append(RegionOutput(f"y{number}", term, dtype, tuple(self.extents[a] for a in axes), axes))
        axes_of = tuple(Axis("ijklmn"[i], size) for i, size in enumerate(self.extents))
        return RegionProgram(
            "random", axes_of, tuple(self.inputs), tuple(self.terms.terms), tuple(outputs), tuple(self.streams)
        )
