"""The C header of one op: places of its arguments and attributes, and a struct that has them by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphdock.contracts import ArgDef, AttrDef, OpDef
from graphdock.errors import NotFoundError, PluginError
from graphdock.plugin.discovery import FILE_NAME
from graphdock.plugin.manifest import load

from graphdock_opgen.library import dotted_name
from graphdock_opgen.names import snake
from graphdock_opgen.render import environment
from graphdock_opgen.spec_docs import documented, documented_op

__all__ = ["find_opdef", "header_name", "ops_with_kernels", "render_header"]

#: Words that C99 or C++ keep for themselves.
_RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
    inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    _Bool _Complex _Imaginary""".split()
)
#: What a member of the struct is -> how C spells it, up to the member's name.
_TYPES = {
    "tensor": "const gd_tensor *",
    "tensors": "gd_list ",
    "int": "int64_t ",
    "float": "double ",
    "bool": "int ",
    "string": "gd_text ",
    "type": "int32_t ",
    "attr": "const gd_attr *",
}


@dataclass(frozen=True, slots=True)
class _Field:
    """A member of the struct: input, output or attribute number ``place`` of its ``side``; ``index`` is that place's name in C."""

    kind: str
    name: str
    side: str
    place: int
    index: str
    note: str


def header_name(op: str) -> str:
    """``so3.TensorProduct`` -> ``so3_tensor_product.h``."""
    return f"{_prefix(op)}.h"


def render_header(opdef: OpDef) -> str:
    """The text of the op's header. It needs no other but graphdock/kernel.h, and compiles as C99 and C++11."""
    prefix = _prefix(opdef.name)
    fields: list[_Field] = []
    taken = {"call"}

    def add(kind: str, side: str, place: int, name: str, note: str) -> None:
        index = _unique(f"{prefix}_{side}_{name}".upper(), taken)
        fields.append(_Field(kind, _unique(name, taken), side, place, index, note))

    for side, args in (("input", opdef.inputs), ("output", opdef.outputs)):
        for place, arg in enumerate(args):
            add("tensors" if arg.arity == "many" else "tensor", side, place, arg.name, _about(arg, side))
    types = [AttrDef(v.name, "list(type)" if v.is_list else "type") for v in opdef.types]
    for place, attr in enumerate([*types, *opdef.attrs]):
        # one that may be null is read through its gd_attr, which says whether it is
        kind = attr.type if attr.type in _TYPES and attr.default is not None else "attr"
        add(kind, "attr", place, attr.name, f"attribute, {attr.type}{f': {attr.doc}' if attr.doc else ''}")
    text: str = (
        environment()
        .get_template("native/op.h.j2")
        .render(
            type=opdef.name, prefix=prefix, summary=opdef.summary, version=opdef.version, fields=fields, types=_TYPES
        )
    )
    return text


def _about(arg: ArgDef, side: str) -> str:
    shape, doc = f" {arg.shape}" if arg.shape else "", f": {arg.doc}" if arg.doc else ""
    return f"{side}, {arg.dtype}{shape}{doc}{' NULL when it is absent.' if arg.arity == 'optional' else ''}"


def _prefix(op: str) -> str:
    return "_".join(snake(part).strip("_") for part in op.split("."))


def _unique(name: str, taken: set[str]) -> str:
    while name in taken or name in _RESERVED:
        name += "_"
    taken.add(name)
    return name


def find_opdef(op: str, package: Path | None = None) -> OpDef:
    """The OpDef of an installed op, or of one in a package's folder, which need not be installed.

    Raises:
      UnknownOpError: nobody declares it. PluginError: the package's ``_gen`` can't be imported.
    """
    if package is not None and op in (table := _declared(package)):
        return documented(table[op](), package)
    host: Any = importlib.import_module("graphdock.plugin.host")
    return documented_op(host.default_host().ops, op)


def _declared(package: Path) -> dict[str, Any]:
    """The op table of a package's folder; empty where it declares no ops."""
    if not (package / "specs").is_dir():
        return {}
    dotted = dotted_name(package)
    top = str(package.resolve().parents[dotted.count(".")])
    sys.path.insert(0, top)
    try:
        table: dict[str, Any] = importlib.import_module(f"{dotted}._gen.opdefs").OPS
    except ImportError as error:
        raise PluginError(
            f"the ops of {package} can't be read: {error}", hint=f"graphdock opgen generate {package}"
        ) from error
    finally:
        sys.path.remove(top)
    return table


def ops_with_kernels(package: Path) -> list[str]:
    """The ops that a package's manifest lists kernels for, sorted.

    Raises:
      NotFoundError: the package has no manifest, or one without kernels.
    """
    path = package / FILE_NAME
    found = sorted({kernel.op for kernel in load(str(path)).kernels}) if path.is_file() else []
    if not found:
        raise NotFoundError(f"{path} lists no kernels", hint=f"graphdock opgen manifest {package}, or name the ops")
    return found
