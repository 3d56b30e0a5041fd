"""What an op is: its arguments, attributes, types, shape rule and traits, apart from how anything computes it.

An :class:`OpDef` is written once, in YAML, and generated into Python tables that build each OpDef at first use. Functions it
names (shape rule, gradient, decomposition) are ``"module:name"`` strings, resolved at first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

__all__ = ["ArgDef", "AttrDef", "OpDef", "OpLibrary", "REQUIRED", "TypeVarDef"]


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


#: Default of an attribute that has none.
REQUIRED: Final = _Required()

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TypeVarDef:
    """A type variable, such as T. It is an attribute of type ``type`` (or ``list(type)``), inferred from the inputs.

    Attributes:
      allow: names of the dtypes it may stand for; empty allows all.
      default: dtype name used where no input binds it.
      is_list: stands for one dtype per element of its list argument.
    """

    name: str
    allow: tuple[str, ...] = ()
    default: str | None = None
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class AttrDef:
    """A graph-time constant of an op.

    Attributes:
      type: ``int``, ``float``, ``bool``, ``string``, ``type``, ``shape``, ``tensor``, ``func``, or ``list(...)`` of one of them.
      default: its value when the caller gives none; REQUIRED when the caller must.
      minimum, maximum: bounds of a number, or of the length of a list.
      allowed: values it may take; empty allows all.
      inferred: an int that is the length of a list argument (``N * T``); callers do not give it.
    """

    name: str
    type: str
    default: Any = REQUIRED
    minimum: int | float | None = None
    maximum: int | float | None = None
    allowed: tuple[Any, ...] = ()
    doc: str = ""
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class ArgDef:
    """An input or output.

    Attributes:
      dtype: a dtype name or a type variable.
      shape: a pattern such as ``"[*B, M, N]"`` (see :mod:`graphdock.opdef.shape_rule`); None says nothing.
      arity: ``one``, ``optional`` (input only) or ``many``.
      count: for ``many``: an int attribute's name or an expression over attributes (``"L + 1"``); ``"len(T)"`` for a type list.
      memory: ``device``, or ``host`` for small integers that steer a kernel (axes, shapes).
      mutates: the op writes through this resource handle.
      differentiable: floating inputs and outputs that gradients flow through.
    """

    name: str
    dtype: str
    shape: str | None = None
    arity: str = "one"
    count: str | None = None
    memory: str = "device"
    mutates: bool = False
    differentiable: bool = True
    doc: str = ""


@dataclass(frozen=True, slots=True)
class OpDef:
    """One op, complete.

    Attributes:
      name: the type string of its nodes: bare for the host's and std's ops, ``ns.Name`` for others.
      let, where: derived dims and ``(check, message)`` pairs of the shape rule.
      shape_fn: ``"module:name"`` of a shape function, where patterns do not say enough; takes a
        :class:`graphdock.opdef.shape_rule.ShapeContext` and returns one Dims per output.
      traits: ``stateful`` (never merged, dropped only when nobody needs it), ``random``, ``host`` (runs on host memory only),
        ``elementwise``, ``commutative``, ``aggregate``, ``control_flow``, ``may_block``, ``no_gradient``.
      aliases: output name -> input name: the output holds the input's elements (reshape, transpose, identity).
      gradient: ``"module:name"`` of the function that builds gradients, None where the op has none at all.
      gradient_kinds: per input ``formula``, ``op``, ``fn``, ``none`` or ``todo: reason``.
      decomposition: ``"module:name"`` of a function that builds the op from others.
      reference: ``"module:name"`` of the oracle used by conformance; never the cpu kernel's own callable.
      operators: Python operator methods that this op implements, such as ``__add__``.
      package: import package that declared it; its own kernels need no entry in ``backends``.
      source: file and line of its spec.
    """

    name: str
    version: int = 1
    summary: str = ""
    doc: str = ""
    inputs: tuple[ArgDef, ...] = ()
    outputs: tuple[ArgDef, ...] = ()
    attrs: tuple[AttrDef, ...] = ()
    types: tuple[TypeVarDef, ...] = ()
    let: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    where: tuple[tuple[str, str], ...] = ()
    shape_fn: str | None = None
    traits: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    gradient: str | None = None
    gradient_kinds: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    decomposition: str | None = None
    reference: str | None = None
    operators: tuple[str, ...] = ()
    deprecated: str | None = None
    package: str = ""
    source: str = ""

    def attr(self, name: str) -> AttrDef | None:
        """The attribute of that name, or None."""
        return next((a for a in self.attrs if a.name == name), None)

    def input(self, name: str) -> ArgDef | None:
        return next((a for a in self.inputs if a.name == name), None)

    @property
    def is_stateful(self) -> bool:
        return "stateful" in self.traits

    def __str__(self) -> str:
        """``MatMul(a: T, b: T) -> y: T``."""

        def args(items: tuple[ArgDef, ...]) -> str:
            mark = {"one": "", "optional": "?", "many": "*"}
            return ", ".join(f"{mark[a.arity]}{a.name}: {a.dtype}" for a in items)

        return f"{self.name}({args(self.inputs)}) -> {args(self.outputs) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class OpLibrary:
    """The ops of one package, as ``register_ops`` returns them.

    Attributes:
      module: dotted name of the generated module. It holds ``OPS`` (op type -> function that builds its OpDef) and
        ``OPERATORS`` (operator method -> ``"module:function"`` of the wrapper), and is imported at first use.
      cases: dotted name of the generated conformance cases, or None.
    """

    module: str
    cases: str | None = None
