"""Text for people from a spec: docstrings and annotated signatures of wrappers."""

from __future__ import annotations

import re
import textwrap

from graphdock import dtypes

from graphdock_opgen.escape import Landed, code
from graphdock_opgen.model import DTYPE_CLASSES, ArgSpec, AttrSpec
from graphdock_opgen.op import Op, Param
from graphdock_opgen.pretty import literal

__all__ = ["docstring", "dtype_words", "gradient_words", "shape_words", "signature", "typed_signature", "typed_returns"]

_ATTR_TYPES = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "string": "str | bytes",
    "type": "DTypeLike",
    "shape": "ShapeLike",
    "tensor": "TensorLike",
    "func": "Callable[..., Any]",
}


def dtype_words(op: Op, dtype: str) -> str:
    """``float32 or float64`` for a type variable; a class of dtypes by its name where that is shorter."""
    if dtype in dtypes.ALL:
        return dtype
    allowed = op.allow.get(dtype)
    if not allowed:
        return "any dtype"
    for words, group in (
        ("any dtype", "any"),
        ("integer, floating or complex", "numeric"),
        ("integer or floating", "real"),
        ("floating or complex", "inexact"),
        ("floating", "floats"),
        ("integer", "ints"),
        ("complex", "complex"),
    ):
        if set(allowed) == set(DTYPE_CLASSES[group]):
            return words
    return allowed[0] if len(allowed) == 1 else ", ".join(allowed[:-1]) + " or " + allowed[-1]


def shape_words(shape: str | None) -> str:
    """``of any shape``, ``scalar``, or the pattern."""
    if shape is None or shape.strip() == "?":
        return "of any shape"
    text = shape.strip()
    if text == "[]":
        return "scalar"
    inner = text[1:-1].strip()
    if inner.startswith("*") and inner[1:].isidentifier():
        return f"of any shape {text}"
    return f"of shape {text}"


#: Width of a docstring's text, and of what stands indented in it.
_TEXT, _INDENTED = 116, 114


def _arg_line(op: Op, arg: ArgSpec, python: str, seen: dict[str, str]) -> str:
    words = dtype_words(op, arg.dtype)
    if arg.dtype in op.spec.types:
        if arg.dtype in seen and arg.arity.kind != "many":
            words = f"of {seen[arg.dtype]}'s dtype"
        else:
            seen.setdefault(arg.dtype, python)
    shape = shape_words(arg.shape)
    if arg.dtype == "resource":
        text = f"handle of a {arg.resource or 'variable'}"
    elif arg.arity.kind == "many":
        text = f"list of {'scalars' if shape == 'scalar' else f'tensors {shape}'}, {words}"
    else:
        text = f"{'scalar' if shape == 'scalar' else f'tensor {shape}'}, {words}"
    if arg.arity.kind == "optional":
        text = f"optional {text}"
    return _item(python, f"{text}. {arg.doc}".rstrip())


def _item(name: str, text: str, indent: str = "  ") -> str:
    return "\n".join(
        textwrap.wrap(
            f"{name}: {text}", _TEXT, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False
        )
    )


def docstring(op: Op) -> str:
    """The docstring of a wrapper: plain text, to be escaped and indented.

    It says what the annotations do not: what an argument is for, shapes, dtypes and bounds; not ``name``, which every wrapper has.
    That of a wrapper without a public name is one line: who calls it has the op's page, ``graphdock ops NAME``.
    """
    spec = op.spec
    parts = [spec.summary.strip()]
    if not spec.api.endpoints:
        return parts[0]
    if spec.math:
        lines = [
            w for line in spec.math.strip().splitlines() for w in textwrap.wrap(line, _INDENTED, break_long_words=False)
        ]
        parts.append(textwrap.indent("\n".join(lines), "  "))
    if spec.doc:
        parts.append("\n".join(textwrap.fill(p, _TEXT, break_long_words=False) for p in spec.doc.strip().split("\n\n")))
    seen: dict[str, str] = {}
    lines = [line for p in op.params if (line := _param_line(op, p, seen))]
    parts += ["Args:\n" + "\n".join(lines)] if lines else []
    parts.append(_returns(op, seen))
    raises = [
        _item("ShapeError", re.sub(r"\{(\w+)\}", r"\1", f"{w.error}.").replace("..", ".")) for w in spec.dims.where
    ]
    parts += ["Raises:\n" + "\n".join(raises)] if raises else []
    parts += [f"Deprecated: {spec.deprecated}"] if spec.deprecated else []
    return "\n\n".join(parts)


def _param_line(op: Op, param: Param, seen: dict[str, str]) -> str:
    """Return what is to say of a parameter beside its type and default; empty where that says all."""
    if param.kind == "name":
        return ""
    arg = op.input(param.of)
    if arg is not None:
        return _arg_line(op, arg, param.name, seen)
    if param.kind == "type":
        words = "" if not op.allow[param.of] else f"{dtype_words(op, param.of)}. "
        text = f"{words}{op.spec.types[param.of].doc}"
    else:
        attr = op.attr(param.of)
        assert attr is not None
        bounds = [f"at least {attr.min}"] if attr.min is not None else []
        bounds += [f"at most {attr.max}"] if attr.max is not None else []
        shown = attr.one_of and listed(attr) is None
        bounds += [f"one of {', '.join(map(repr, attr.one_of))}"] if shown else []
        text = f"{attr.doc} {', '.join(bounds).capitalize()}{'.' if bounds else ''}"
    return _item(param.name, text.strip()) if text.strip() else ""


def _returns(op: Op, seen: dict[str, str]) -> str:
    outputs = [o for o in op.spec.outputs if op.spec.api.returns in (None, o.name)]
    if not outputs:
        return "Returns: The Operation."

    def words(arg: ArgSpec) -> str:
        many, shape = arg.arity.kind == "many", shape_words(arg.shape)
        dtype = f"of {seen[arg.dtype]}'s dtype" if arg.dtype in seen and not many else dtype_words(op, arg.dtype)
        one = "scalar" if shape == "scalar" else f"tensor {shape}"
        noun = f"List, each a {one}" if many else one.capitalize() if shape == "scalar" else f"Tensor {shape}"
        return f"{noun}, {dtype}. {arg.doc}".rstrip()

    if len(outputs) > 1:
        return "Returns:\n" + "\n".join(_item(o.name, words(o)) for o in outputs)
    return _item("Returns", words(outputs[0]), "")


def gradient_words(op: Op) -> Landed:
    """Return how each input gets its gradient, as Markdown."""
    if not op.has_gradient:
        return Landed("none.")
    parts = []
    for entry in op.entries:
        value = f": {code(entry.value)}" if entry.value else ""
        parts.append(
            f"{', '.join(entry.inputs)} by {entry.kind}{value}"
            if entry.kind != "none"
            else f"{', '.join(entry.inputs)} none"
        )
    lets = ", ".join(f"{name} = {code(text)}" for name, text in op.lets.items())
    return Landed("; ".join(parts) + (f"; where {lets}." if lets else "."))


def signature(op: Op) -> list[str]:
    """Parameters of the wrapper: ``a, b, transpose_a=False, name=None``."""
    return [p.name if p.default is None else f"{p.name}={p.default}" for p in op.params]


def typed_signature(op: Op) -> list[str]:
    """The same with types."""
    return [f"{p.name}: {_type_of(op, p)}" + ("" if p.default is None else f" = {p.default}") for p in op.params]


def listed(attr: AttrSpec) -> str | None:
    """An enumeration's values as a Literal; None for other attributes."""
    kind = attr.type.removeprefix("list(").removesuffix(")")
    known = attr.one_of and kind in ("int", "string", "bool")
    return f"Literal[{', '.join(map(literal, attr.one_of))}]" if known else None


def _type_of(op: Op, param: Param) -> str:
    """Return what a parameter takes: an enumeration's values as a Literal."""
    if param.kind == "name":
        return "str | None"
    arg = op.input(param.of)
    if arg is not None:
        one = "Tensor" if arg.dtype == "resource" else "TensorLike"
        return {"one": one, "optional": f"{one} | None", "many": f"Sequence[{one}]"}[arg.arity.kind]
    if param.kind == "type":
        found, many = "DTypeLike", op.spec.types[param.of].list_
    else:
        attr = op.attr(param.of)
        assert attr is not None
        many = attr.type.startswith("list(")
        kind = attr.type.removeprefix("list(").removesuffix(")")
        found = listed(attr) or _ATTR_TYPES[kind]
    found = f"Sequence[{found}]" if many else found
    return f"{found} | None" if param.default == "None" and found != "ShapeLike" else found


def typed_returns(op: Op) -> tuple[str, str | None, list[tuple[str, str]]]:
    """Return type, name of the NamedTuple to declare or None, and its fields."""

    def one(arg: ArgSpec) -> str:
        return "list[Tensor]" if arg.arity.kind == "many" else "Tensor"

    outputs = [o for o in op.spec.outputs if op.spec.api.returns in (None, o.name)]
    if not outputs:
        return "Operation", None, []
    if len(outputs) == 1:
        return one(outputs[0]), None, []
    return f"_{op.name}Outputs", f"_{op.name}Outputs", [(o.name, one(o)) for o in outputs]
