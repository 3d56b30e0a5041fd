"""Vectors from and to memory: whole ones, and those at the end of a row, of which some lanes are in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import RegionInput, RegionOutput

from graphdock_llvm.emitter import HALVES, SCALARS, Emitter

__all__ = [
    "OutputPart",
    "Place",
    "address",
    "held",
    "in_memory",
    "input_address",
    "load",
    "size_of",
    "store",
    "strides",
]


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a loop in a row: its first element, and which lanes are in the row (None: all)."""

    at: str
    mask: str | None


@dataclass(frozen=True, slots=True)
class OutputPart(RegionOutput):
    """A part of an output, whose dims have gaps between them: elements from place to place of each."""

    strides: tuple[int, ...] = ()


def strides(part: RegionInput | RegionOutput) -> Sequence[Any] | None:
    """Elements from place to place of each dim, as the program says; None where it lies row by row without gaps."""
    return part.strides if isinstance(part, RegionInput | OutputPart) else None


def address(e: Emitter, slot: int) -> str:
    """Address that stands in a slot of the table."""
    return e.value(f"load ptr, ptr {e.value(f'getelementptr ptr, ptr %table, i64 {slot}')}")


def input_address(e: Emitter, part: RegionInput) -> str:
    """Address of an input's first element."""
    base = address(e, part.source)
    return (
        e.value(f"getelementptr {in_memory(part.dtype.name)}, ptr {base}, i64 {part.offset}") if part.offset else base
    )


def load(e: Emitter, name: str, address: str, place: Place) -> str:
    """A vector from memory, as it is held."""
    scalar = in_memory(name)
    type_, size = e.vector(scalar), size_of(scalar)
    where = e.value(f"getelementptr {scalar}, ptr {address}, i64 {place.at}")
    if place.mask is None:
        value = e.value(f"load {type_}, ptr {where}, align {size}")
    else:
        bits = e.vector("i1")
        args = (("ptr", where), ("i32", str(size)), (bits, place.mask), (type_, "zeroinitializer"))
        value = e.call(f"llvm.masked.load.{e.overload(scalar)}.p0", type_, *args)
    return held(e, name, value)


def held(e: Emitter, name: str, value: str) -> str:
    """A vector of elements in memory, as terms hold them."""
    type_ = e.vector(in_memory(name))
    if name == "bool":
        return e.value(f"icmp ne {type_} {value}, zeroinitializer")
    return e.widen(name, value) if name in HALVES else value


def store(e: Emitter, name: str, value: str, address: str, place: Place) -> None:
    """Write a vector as it is kept in memory."""
    scalar = in_memory(name)
    type_, size = e.vector(scalar), size_of(scalar)
    if name == "bool":
        value = e.convert("zext", e.of(name), value, type_)
    elif name in HALVES:
        value = e.narrow(name, value)
    where = e.value(f"getelementptr {scalar}, ptr {address}, i64 {place.at}")
    if place.mask is None:
        e.line(f"store {type_} {value}, ptr {where}, align {size}")
        return
    if place.mask == e.first_lanes(1):  # LLVM 22 would write four bytes of a vector that was truncated to i16
        first = e.value(f"extractelement {type_} {value}, i64 0")
        e.line(f"store {scalar} {first}, ptr {where}, align {size}")
        return
    args = ((type_, value), ("ptr", where), ("i32", str(size)), (e.vector("i1"), place.mask))
    e.run(f"llvm.masked.store.{e.overload(scalar)}.p0", *args)


def in_memory(name: str) -> str:
    """LLVM's type of an element in memory."""
    return "i8" if name == "bool" else HALVES.get(name) or SCALARS[name]


def size_of(scalar: str) -> int:
    """Bytes of an element of one of LLVM's types in memory."""
    return {"half": 2, "float": 4, "double": 8}.get(scalar) or int(scalar[1:]) // 8
