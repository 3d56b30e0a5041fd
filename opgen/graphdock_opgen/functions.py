"""Functions that formulas may call, and how generated code calls them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphdock_opgen.op import Op
from graphdock_opgen.other_library import OtherLibrary
from graphdock_opgen.public_names import PublicNames

__all__ = [
    "BELOW_TF",
    "BUILTINS",
    "GRADIENT_ERROR",
    "HOST_OPS",
    "IMPORT_MODULE",
    "OPS",
    "TF",
    "Callee",
    "formula_functions",
    "import_lines",
]

#: Imports of generated modules, as they stand there.
BUILTINS = "import builtins as _builtins"
IMPORT_MODULE = "from importlib import import_module as _import_module"
TF = "import graphdock as _tf"
OPS = "from graphdock import ops as _ops"
GRADIENT_ERROR = "from graphdock.errors import GradientError as _GradientError"

_STDLIB = (BUILTINS, IMPORT_MODULE)
#: Op libraries that call their own public functions as names of ``tf``. The host's own would import itself.
BELOW_TF = ("graphdock_std",)
HOST_OPS = "graphdock.ops"


@dataclass(frozen=True, slots=True)
class Callee:
    """A function as generated code reaches it: ``_tf.matmul``, and the import line that binds ``_tf``."""

    source: str
    needs: str


def formula_functions(
    package: str, ops: Iterable[Op], names: PublicNames, others: Iterable[OtherLibrary]
) -> dict[str, Callee]:
    """Name in a formula -> callee.

    A name is looked up among the package's own public ones, then the others', then the snake-case types of the
    package's own ops.
    """
    ops = tuple(ops)
    found: dict[str, Callee] = {}
    for other in others:
        found |= {name: Callee(f"_tf.{name}", TF) for name in other.endpoints}
        found |= _by_hand(other.package, other.names, below_tf=True)
    below_tf = package in BELOW_TF
    own = {
        e.name: Callee(f"_tf.{e.name}", TF) if below_tf else _wrapper(package, op)
        for op in ops
        for e in op.spec.api.endpoints
    }
    by_type = {op.snake: _wrapper(package, op) for op in ops}
    return {**by_type, **found, **own, **_by_hand(package, names, below_tf=below_tf)}


def _by_hand(package: str, names: PublicNames, *, below_tf: bool) -> dict[str, Callee]:
    """A library's public functions and helpers; ``below_tf``: they are reached as names of ``tf``."""
    found: dict[str, Callee] = {}
    for name, target in names.functions.items():
        if package == HOST_OPS:
            found[name] = Callee(f"_ops.{name}", OPS)
        else:
            found[name] = Callee(f"_tf.{name}", TF) if below_tf else _by_target(name, target)
    for name, target in names.helpers.items():
        found[name] = _by_target(name, target)
    return found


def _wrapper(package: str, op: Op) -> Callee:
    return Callee(f"_{op.module}.{op.function}", f"from {package}._gen import {op.module} as _{op.module}")


def _by_target(name: str, target: str) -> Callee:
    module, _, attribute = target.partition(":")
    if module == HOST_OPS:
        return Callee(f"_ops.{attribute}", OPS)
    held = "_" + name.replace(".", "_")
    return Callee(held, f"from {module} import {attribute} as {held}")


def import_lines(needed: Iterable[str]) -> list[str]:
    """The import block of a generated module: the standard library's, a blank line, the others; and one after it."""
    lines = sorted(set(needed), key=lambda line: (not line.startswith("import "), line.split()[1], line))
    plain = [line for line in lines if line in _STDLIB]
    local = [line for line in lines if line not in _STDLIB]
    if plain:
        plain.append("")
    return [*plain, *local, ""] if plain or local else []
