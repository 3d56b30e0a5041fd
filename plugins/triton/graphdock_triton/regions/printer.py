"""Region programs written as Triton.

A kernel without reductions walks tiles of one column. With reductions a tile has rows of kept places; where all reduced places
fit into its columns (``whole``) every element is read once, else the columns are walked once for each reduction upon another,
and once for what is written.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from graphdock.contracts import REDUCTIONS, RegionInput, RegionOutput, RegionProgram, Term

from graphdock_triton.regions.expressions import combined, expression, literal, neutral, reduction, type_name
from graphdock_triton.regions.layout import Layout, is_last, is_tall, levels

__all__ = ["Text", "Walk", "print_region"]


@dataclass(frozen=True, slots=True)
class Walk:
    """Parts of a kernel's text that depend on extents.

    Attributes:
      whole: all reduced places fit into a tile. ``even_kept``, ``even_reduced``: tiles end where the places do, so that nothing
      is masked.
      wide: places are counted in 64 bits.
      split: the reduced places are shared out among blocks, each of which leaves partial results; another kernel puts them
      together.
      blocks: numbers that are drawn for every place, in the order of the places, are drawn by whole blocks of random words.
    """

    whole: bool = True
    even_kept: bool = False
    even_reduced: bool = False
    wide: bool = False
    split: bool = False
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A kernel: its function's name, its source, and its arguments in order.

    ``arguments``: ``x0`` (input 0), ``y0`` (output 0), ``p3`` (partial results of term 3), ``s0_key`` (a word of
    stream 0; of its ordinal the address), ``K``, ``R`` (places kept and reduced),
    ``CHUNK`` (reduced places of a block that shares them), ``nk1`` / ``nr1`` (places of a group), ``e2`` (extent of axis 2),
    ``BLOCK_K``, ``BLOCK_R``.
    """

    name: str
    source: str
    arguments: tuple[str, ...]


def print_region(program: RegionProgram, layout: Layout, walk: Walk) -> Text:
    """The kernel of a program."""
    printer = _Printer(program, layout, walk)
    body = printer.body()
    name = "region_" + re.sub(r"\W+", "_", program.name).strip("_").lower()[:60]
    arguments = printer.arguments()
    shown = [*arguments[:-2], "BLOCK_K: tl.constexpr", "BLOCK_R: tl.constexpr"]
    source = _template().render(
        name=name, program=str(program).splitlines(), arguments=shown, body=body, draws=program.draws
    )
    return Text(name, source, tuple(arguments))


@functools.cache
def _template() -> Any:
    import jinja2

    text = resources.files("graphdock_triton").joinpath("templates/region.py.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.from_string(text)


class _Printer:
    def __init__(self, program: RegionProgram, layout: Layout, walk: Walk) -> None:
        self.program, self.layout, self.walk = program, layout, walk
        self.levels = levels(program)
        self.tall = [is_tall(t, layout) for t in program.terms]
        self.lines: list[str] = []
        self.indent = ""
        self._groups: set[str] = set()
        self._start = "0"
        self._extents = sorted({t.value for t in program.terms if t.op == "extent"})

    def arguments(self) -> list[str]:
        inputs = [f"x{i}" for i in range(len(self.program.inputs))]
        outputs = [f"y{i}" for i, o in enumerate(self.program.outputs) if not self.walk.split or self._is_along(o)]
        partials = [f"p{i}" for i, t in enumerate(self.program.terms) if self.walk.split and t.op in REDUCTIONS]
        words = [f"s{t.value[0]}_{t.value[1]}" for t in self.program.terms if t.op == "stream"]
        numbers = ["K", "R", *["CHUNK"] * self.walk.split, *sorted(self._groups), *(f"e{a}" for a in self._extents)]
        return [*inputs, *outputs, *partials, *words, *numbers, "BLOCK_K", "BLOCK_R"]

    @property
    def _first(self) -> str:
        """The number of this block among those that walk the kept places."""
        return "tl.program_id(0).to(tl.int64)" if self.walk.wide else "tl.program_id(0)"

    def say(self, line: str) -> None:
        self.lines.append(self.indent + line)

    # -- the frame

    def body(self) -> list[str]:
        self.say(f"k = {self._first} * BLOCK_K + tl.arange(0, BLOCK_K)[:, None]")
        if not self.walk.even_kept:
            self.say("k_in = k < K")
        self._places("k", self.layout.kept)
        if not self.layout.reduced:
            self._terms(range(len(self.program.terms)))
            self._store(range(len(self.program.outputs)))
        elif self.walk.split:
            self._share()
        elif self.walk.whole:
            self._columns("tl.arange(0, BLOCK_R)[None, :]")
            self._terms(range(len(self.program.terms)))
            self._store(range(len(self.program.outputs)))
        else:
            self._looped()
        return self.lines

    def _columns(self, start: str) -> None:
        self.say(f"r = {start}")
        if not self.walk.even_reduced:
            self.say("r_in = r < R")
        self._places("r", self.layout.reduced)

    def _looped(self) -> None:
        """Terms of every level after the loop that gives its reductions; then a loop for what is written along the columns."""
        low = [i for i in range(len(self.program.terms)) if not self.tall[i]]
        self._terms(i for i in low if self.levels[i] == 0)
        for level in range(1, max(self.levels) + 1):
            reductions = [i for i, t in enumerate(self.program.terms) if t.op in REDUCTIONS and self.levels[i] == level]
            for i in reductions:
                self._begin(i)
            operands = [self.program.terms[i].args[0] for i in reductions]
            self._loop(operands, [self._accumulate(i) for i in reductions])
            for i in reductions:
                self.say(f"t{i} = {reduction(self.program.terms[i].op, self.program.terms[i].dtype, f'a{i}')}")
            self._terms(i for i in low if self.levels[i] == level and i not in reductions)
        along = [i for i, o in enumerate(self.program.outputs) if self._is_along(o)]
        if along:
            self._loop([self.program.outputs[i].term for i in along], [], along)
        self._store(i for i in range(len(self.program.outputs)) if i not in along)

    def _share(self) -> None:
        """One block's share of the reduced places, and its partial results."""
        terms = self.program.terms
        reductions = [i for i, t in enumerate(terms) if t.op in REDUCTIONS]
        along = [i for i, o in enumerate(self.program.outputs) if self._is_along(o)]
        wanted = [*(terms[i].args[0] for i in reductions), *(self.program.outputs[i].term for i in along)]
        self._terms(i for i in range(len(terms)) if not self.tall[i] and self.levels[i] == 0)
        for i in reductions:
            self._begin(i)
        self.say("first = tl.program_id(1) * CHUNK")
        self._loop(wanted, [self._accumulate(i) for i in reductions], along, "first, tl.minimum(R, first + CHUNK)")
        for i in reductions:
            self.say(f"t{i} = {reduction(terms[i].op, terms[i].dtype, f'a{i}')}")
            mask = "" if self.walk.even_kept else ", mask=k_in"
            self.say(f"tl.store(p{i} + tl.program_id(1) * K + k, tl.broadcast_to(t{i}, [BLOCK_K, 1]){mask})")

    def _begin(self, number: int) -> None:
        """The accumulators of a reduction."""
        term = self.program.terms[number]
        shape = self._shape((*term.axes, *term.value))
        self.say(f"a{number} = tl.full({shape}, {neutral(term.op, term.dtype)}, {type_name(term.dtype)})")

    def _loop(
        self, wanted: Sequence[int], ends: Sequence[str], written: Sequence[int] = (), places: str = "0, R"
    ) -> None:
        self.say(f"for start in range({places}, BLOCK_R):")
        self.indent = "    "
        begin = self._start = "start.to(tl.int64)" if self.walk.wide else "start"
        self._columns(f"{begin} + tl.arange(0, BLOCK_R)[None, :]")
        self._terms(i for i in self._needed(wanted) if self.tall[i])
        for line in ends:
            self.say(line)
        self._store(written)
        self.indent = ""

    def _accumulate(self, number: int) -> str:
        term = self.program.terms[number]
        tile = self._masked(number)
        made = combined(term.op, term.dtype, f"a{number}", tile)
        small = term.op in ("sum", "prod") and term.dtype.is_integer
        return f"a{number} = ({made}).to({type_name(term.dtype)})" if small else f"a{number} = {made}"

    def _masked(self, number: int) -> str:
        """The operand of a reduction with what lies beyond the columns made neutral, as a whole tile."""
        term = self.program.terms[number]
        operand = f"t{term.args[0]}"
        if self.walk.even_reduced:
            return operand
        made = f"tl.where(r_in, {operand}, {neutral(term.op, term.dtype)})"
        if term.dtype.is_bool:
            return f"({operand} & r_in)" if term.op == "any" else f"({operand} | ~r_in)"
        return made if term.dtype.is_floating else f"{made}.to({type_name(term.dtype)})"

    def _needed(self, wanted: Iterable[int]) -> list[int]:
        """These terms and what they need that differs along the columns, in order."""
        found: set[int] = set()
        waiting = list(wanted)
        while waiting:
            i = waiting.pop()
            if i in found:
                continue
            found.add(i)
            if self.program.terms[i].op not in REDUCTIONS:
                waiting += self.program.terms[i].args
        return sorted(found)

    # -- places

    def _places(self, letter: str, groups: Sequence[Sequence[int]]) -> None:
        """``k0``, ``k1``, ...: the place in each group, where there are several."""
        if len(groups) < 2:
            return
        rest = letter
        for i in range(len(groups) - 1, 0, -1):
            size = f"n{letter}{i}"
            self._groups.add(size)
            self.say(f"{letter}{i} = {rest} % {size}")
            self.say(f"{letter}{i}_ = {rest} // {size}")
            rest = f"{letter}{i}_"
        self.say(f"{letter}0 = {rest}")

    def _place(self, axis: int) -> str:
        """The place along an axis that is a group of its own."""
        for letter, groups in (("k", self.layout.kept), ("r", self.layout.reduced)):
            for i, group in enumerate(groups):
                if axis in group:
                    return letter if len(groups) == 1 else f"{letter}{i}"
        raise AssertionError(axis)

    def _offset(self, tensor: RegionInput | RegionOutput) -> str:
        """Return where the elements of a tensor lie that belong to a tile: ``k * R + r``."""
        return self._number({a for a in tensor.dims if a is not None})

    def _number(self, mine: Collection[int]) -> str:
        """The number of a place among those of some axes, row by row."""
        parts: list[tuple[str, str]] = []  # place, size of the group
        ordered = sorted(
            [("k", i, g) for i, g in enumerate(self.layout.kept)]
            + [("r", i, g) for i, g in enumerate(self.layout.reduced)],
            key=lambda found: found[2],
        )
        for letter, i, group in ordered:
            if group[0] not in mine:
                continue
            groups = self.layout.kept if letter == "k" else self.layout.reduced
            if len(groups) == 1:
                parts.append((letter, letter.upper()))
            else:
                parts.append((f"{letter}{i}", f"n{letter}{i}"))
        if [p for p, _ in parts] == [f"k{i}" for i in range(len(self.layout.kept))] and len(parts) > 1:
            return "k"
        if not parts:
            return "tl.full([1, 1], 0, tl.int32)"
        made = parts[0][0]
        for place, size in parts[1:]:
            if size.startswith("n"):
                self._groups.add(size)
            made = f"({made}) * {size} + {place}" if " " in made else f"{made} * {size} + {place}"
        return made

    # -- terms

    def _terms(self, numbers: Iterable[int]) -> None:
        for i in numbers:
            term = self.program.terms[i]
            if term.op == "input":
                self.say(f"t{i} = {self._loaded(term.value)}")
            elif term.op == "literal":
                self.say(f"t{i} = {literal(term.value, term.dtype)}")
            elif term.op == "extent":
                self.say(f"t{i} = tl.cast(e{term.value}, tl.int64)")
            elif term.op == "index":
                self.say(f"t{i} = {self._place(term.value)}.to(tl.int64)")
            elif term.op == "place":
                self.say(f"t{i} = ({self._number(term.axes)}).to(tl.int64)")
            elif term.op == "stream":
                number, word = term.value
                name = f"s{number}_{word}"
                self.say(f"t{i} = {f'tl.load({name})' if word == 'ordinal' else f'tl.cast({name}, tl.uint64)'}")
            elif term.op == "draw" and self._by_blocks(term):
                self.say(f"t{i} = {self._drawn(term)}")
            elif term.op in REDUCTIONS:
                self.say(f"t{i} = {reduction(term.op, term.dtype, self._masked(i))}")
            else:
                args = [f"t{a}" for a in term.args]
                self.say(f"t{i} = {expression(term, self.program.terms[term.args[-1]].dtype, args)}")

    def _by_blocks(self, term: Term) -> bool:
        """Return whether there is a number for every place, in order, so that one block of random words makes several of them."""
        cast = self.program.terms[term.args[-1]]
        place = self.program.terms[cast.args[0]] if cast.op == "cast" else cast
        return self.walk.blocks and place.op == "place" and len(place.axes) == len(self.program.axes)

    def _drawn(self, term: Term) -> str:
        """The numbers of a tile, by blocks of random words along what lies side by side."""
        size = 4 if term.dtype.name == "float64" else 8
        words = ", ".join(f"t{a}" for a in term.args[:-1])
        rows = f"{self._first} * BLOCK_K // {size} + tl.arange(0, BLOCK_K // {size})[None, :]"
        if not self.layout.reduced:
            return f"tl.trans(_draws_{term.dtype.name}({words}, ({rows}).to(tl.uint64)))"
        if is_last(self.program, self.layout.reduced):
            block = f"k * (R // {size}) + {self._start} // {size} + tl.arange(0, BLOCK_R // {size})[None, :]"
            return f"_draws_{term.dtype.name}({words}, ({block}).to(tl.uint64))"
        block = f"({self._start} + tl.arange(0, BLOCK_R)[:, None]) * (K // {size}) + {rows}"
        return f"tl.trans(_draws_{term.dtype.name}({words}, ({block}).to(tl.uint64)))"

    def _loaded(self, number: int) -> str:
        source = self.program.inputs[number]
        mask = self._mask(source)
        load = f"tl.load(x{number} + {self._offset(source)}{f', mask={mask}, other=0' if mask else ''})"
        return f"{load}.to(tl.float32)" if source.dtype.name in ("float16", "bfloat16") else load

    def _store(self, numbers: Iterable[int]) -> None:
        for i in numbers:
            out = self.program.outputs[i]
            offset, mask = self._offset(out), self._mask(out)
            shape = self._shape([a for a in out.dims if a is not None])
            value = f"tl.broadcast_to({self._tensor(out.term)}, {shape})"
            self.say(f"tl.store(y{i} + {offset}, {value}{f', mask={mask}' if mask else ''})")

    def _tensor(self, number: int) -> str:
        term = self.program.terms[number]
        plain = term.op == "literal" and term.dtype.name == "float32"
        return f"tl.full([1, 1], t{number}, tl.float32)" if plain else f"t{number}"

    def _shape(self, axes: Iterable[int]) -> str:
        """The tile of what differs along axes."""
        mine = set(axes)
        rows = "BLOCK_K" if mine & self.layout.kept_axes else "1"
        return f"[{rows}, {'BLOCK_R' if mine - self.layout.kept_axes else '1'}]"

    def _is_along(self, out: RegionOutput) -> bool:
        """Return whether an output has an axis of the columns."""
        return any(a is not None and a not in self.layout.kept_axes for a in out.dims)

    def _mask(self, tensor: RegionInput | RegionOutput) -> str:
        """Return what of a tile lies in a tensor; empty for all of it."""
        mine = {a for a in tensor.dims if a is not None}
        kept = bool(mine & self.layout.kept_axes) and not self.walk.even_kept
        along = bool(mine - self.layout.kept_axes) and not self.walk.even_reduced
        return " & ".join(["k_in"] * kept + ["r_in"] * along)
