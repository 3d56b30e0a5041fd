"""Emitter of LLVM's text: instructions over vectors of one width, the intrinsics that they call, and constants."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from graphdock.contracts import DType

__all__ = ["HALVES", "SCALARS", "Emitter", "scalar_constant"]

#: dtype of a term -> LLVM's type of an element that is held.
SCALARS = {
    "float32": "float",
    "float64": "double",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "i1",
}
#: Halves, which are held in float32: LLVM's type in memory. Its bfloat needs a library's function where the CPU has none.
HALVES = {"float16": "half", "bfloat16": "i16"}


class Emitter:
    """Lines of one function. A value is the text that stands for it: a name, or a constant.

    Attributes:
      width: lanes of every vector.
      lines: of the body, in order. ``declarations``: of the intrinsics that it calls. ``functions``: of the module, which it
        calls too.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self._count = 0

    def vector(self, scalar: str) -> str:
        """The vector type of elements of an LLVM type."""
        return f"<{self.width} x {scalar}>"

    def of(self, dtype: DType | str) -> str:
        """The vector type of a dtype, as it is held."""
        return self.vector(SCALARS[dtype if isinstance(dtype, str) else dtype.name])

    def name(self, what: str = "v") -> str:
        """A new name."""
        self._count += 1
        return f"%{what}{self._count}"

    def line(self, text: str) -> None:
        """A line as it is."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """The begin of a block."""
        self.lines.append(f"{name}:")

    def value(self, text: str) -> str:
        """The result of an instruction."""
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def binary(self, instruction: str, type_: str, left: str, right: str) -> str:
        """``instruction type left, right``."""
        return self.value(f"{instruction} {type_} {left}, {right}")

    def convert(self, instruction: str, source: str, value: str, target: str) -> str:
        """``instruction source value to target``."""
        return self.value(f"{instruction} {source} {value} to {target}")

    def select(self, condition: str, type_: str, left: str, right: str) -> str:
        """Where the condition holds ``left``, else ``right``."""
        return self.value(f"select {self.vector('i1')} {condition}, {type_} {left}, {type_} {right}")

    def call(self, intrinsic: str, result: str, *args: tuple[str, str], flags: str = "") -> str:
        """An intrinsic by its full name, with (type, value) pairs."""
        self._declare(intrinsic, result, args)
        return self.value(f"call {flags}{result} @{intrinsic}({', '.join(f'{t} {v}' for t, v in args)})")

    def run(self, intrinsic: str, *args: tuple[str, str]) -> None:
        """An intrinsic that gives nothing."""
        self._declare(intrinsic, "void", args)
        self.line(f"call void @{intrinsic}({', '.join(f'{t} {v}' for t, v in args)})")

    def _declare(self, intrinsic: str, result: str, args: Sequence[tuple[str, str]]) -> None:
        self.declarations[intrinsic] = f"declare {result} @{intrinsic}({', '.join(t for t, _ in args)})"

    def overload(self, scalar: str) -> str:
        """How intrinsics call the vector type in their names: ``v16f32``."""
        letters = {"float": "f32", "double": "f64", "half": "f16"}.get(scalar, scalar)
        return f"v{self.width}{letters}"

    def math(self, name: str, scalar: str, *args: str) -> str:
        """``llvm.name`` of vectors, element by element."""
        type_ = self.vector(scalar)
        return self.call(f"llvm.{name}.{self.overload(scalar)}", type_, *[(type_, a) for a in args])

    def widen(self, half: str, value: str) -> str:
        """A vector of halves in float32."""
        if half == "float16":
            return self.convert("fpext", self.vector("half"), value, self.vector("float"))
        wide = self.convert("zext", self.vector("i16"), value, self.vector("i32"))
        wide = self.binary("shl", self.vector("i32"), wide, self.constant("i32", 16))
        return self.convert("bitcast", self.vector("i32"), wide, self.vector("float"))

    def narrow(self, half: str, value: str) -> str:
        """A vector of float32 as halves, rounded to nearest and even; NaN stays one."""
        real, whole = self.vector("float"), self.vector("i32")
        if half == "float16":
            return self.convert("fptrunc", real, value, self.vector("half"))
        bits = self.convert("bitcast", real, value, whole)
        odd = self.binary(
            "and", whole, self.binary("lshr", whole, bits, self.constant("i32", 16)), self.constant("i32", 1)
        )
        up = self.binary("add", whole, self.binary("add", whole, bits, self.constant("i32", 0x7FFF)), odd)
        quiet = self.binary("or", whole, bits, self.constant("i32", 0x400000))
        rounded = self.select(self.value(f"fcmp uno {real} {value}, {value}"), whole, quiet, up)
        rounded = self.binary("lshr", whole, rounded, self.constant("i32", 16))
        return self.convert("trunc", whole, rounded, self.vector("i16"))

    def broadcast(self, scalar: str, value: str) -> str:
        """A vector of one scalar value."""
        type_ = self.vector(scalar)
        first = self.value(f"insertelement {type_} poison, {scalar} {value}, i64 0")
        return self.value(f"shufflevector {type_} {first}, {type_} poison, <{self.width} x i32> zeroinitializer")

    def constant(self, scalar: str, number: float | int | bool) -> str:
        """A vector constant."""
        return f"splat ({scalar} {scalar_constant(scalar, number)})"

    def lanes(self, scalar: str) -> str:
        """The constant ``<0, 1, 2, ...>``."""
        return f"<{', '.join(f'{scalar} {i}' for i in range(self.width))}>"

    def first_lanes(self, count: int) -> str:
        """The mask of the first lanes."""
        return f"<{', '.join(f'i1 {str(i < count).lower()}' for i in range(self.width))}>"


def scalar_constant(scalar: str, number: float | int | bool) -> str:
    """A number as LLVM writes it: floating ones by their bits, so that nothing is rounded."""
    if scalar == "i1":
        return str(bool(number)).lower()
    if scalar == "float":
        number = struct.unpack("<f", struct.pack("<f", _in_range(float(number))))[0]
    if scalar in ("float", "double"):
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(number)))[0]:016X}"
    bits = int(scalar[1:])
    value = int(number) & ((1 << bits) - 1)
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def _in_range(number: float) -> float:
    """A float64 that is beyond float32 is an infinity there, which ``struct`` refuses."""
    largest = 3.4028235677973366e38  # halfway between the largest float32 and what would follow
    if number >= largest:
        return float("inf")
    return float("-inf") if number <= -largest else number
