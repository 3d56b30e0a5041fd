"""Tables as ``graphdock opgen`` writes them: of ops, whose rows say what their names and specs do not, and of public names.

A row of an op is a function of an :class:`OpRow`, called when its op is first asked for; importing a table builds nothing.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import REQUIRED, ArgDef, AttrDef, OpDef, TypeVarDef

__all__ = [
    "ANY",
    "COMPLEX",
    "FLOATS",
    "INDEX",
    "INEXACT",
    "INTS",
    "NUMERIC",
    "Names",
    "OpRow",
    "REAL",
    "Rows",
    "arg",
    "args",
    "attr",
    "attrs",
    "names_of",
    "op_table",
    "snake",
    "spelled_out",
    "type_var",
    "types",
]

#: Classes of dtypes, as the ``allow`` of a spec names them, in the order of the table of dtypes.
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
INDEX = ("int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = (*INTS, *FLOATS)
INEXACT = (*FLOATS, *COMPLEX)
NUMERIC = (*REAL, *COMPLEX)
ANY = ("bool", *NUMERIC, "string")


_NONE: Mapping[str, Any] = MappingProxyType({})


def snake(name: str) -> str:
    """``MatMul`` -> ``mat_mul``, ``LRN`` -> ``lrn``, ``Conv2DGrad`` -> ``conv2d_grad``, ``While`` -> ``while_``."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def args(**each: str | tuple[str, Mapping[str, Any]]) -> tuple[ArgDef, ...]:
    """Inputs or outputs, name=dtype and shape: ``args(x="T[*S]", shape=arg("int32[_]", memory="host"))``."""
    made = []
    for name, said in each.items():
        text, facts = (said, _NONE) if isinstance(said, str) else said
        dtype, bracket, dims = text.partition("[")
        made.append(ArgDef(name, dtype, f"[{dims}" if bracket else None, **facts))
    return tuple(made)


def arg(text: str, **facts: Any) -> tuple[str, Mapping[str, Any]]:
    """An argument with facts besides dtype and shape: fields of an ArgDef."""
    return text, facts


def attrs(**each: str | tuple[str, Any, Mapping[str, Any]]) -> tuple[AttrDef, ...]:
    """Attributes, name=type: ``attrs(ksize="list(int)", padding=attr("string", "SAME", allowed=("SAME", "VALID")))``."""
    return tuple(
        AttrDef(name, said) if isinstance(said, str) else AttrDef(name, said[0], said[1], **said[2])
        for name, said in each.items()
    )


def attr(kind: str, default: Any = REQUIRED, **facts: Any) -> tuple[str, Any, Mapping[str, Any]]:
    """An attribute with a default or other facts: fields of an AttrDef."""
    return kind, default, facts


def types(**each: tuple[str, ...] | TypeVarDef) -> tuple[TypeVarDef, ...]:
    """Type variables, name=the dtypes that it may stand for, () for all: ``types(T=REAL, Tidx=type_var(INDEX, "int32"))``."""
    return tuple(
        TypeVarDef(name, said) if isinstance(said, tuple) else replace(said, name=name) for name, said in each.items()
    )


def type_var(allow: tuple[str, ...] = (), default: str | None = None, is_list: bool = False) -> TypeVarDef:
    """A type variable with a default, or one that stands for a list of dtypes; its name is given by :func:`types`."""
    return TypeVarDef("", allow, default, is_list)


@lazy_dataclass(frozen=True, slots=True)
class OpRow:
    """Argument of a row: builds the op's OpDef from what the row says.

    Attributes:
      name: the op's type.
      generated: dotted name of the package that holds its gradient and decomposition.
      spec: its file below the package, ``specs/math.yaml``.
      oracles: module in which a reference of the op's own name stands; empty where there is none.
    """

    name: str
    generated: str
    spec: str
    oracles: str

    def __call__(
        self,
        inputs: tuple[ArgDef, ...] = (),
        outputs: tuple[ArgDef, ...] = (),
        attrs: tuple[AttrDef, ...] = (),
        *,
        gradient: str | Mapping[str, str] = "none",
        traits: Iterable[str] = ("pure",),
        effects: Iterable[str] = (),
        decomposed: bool = False,
        reference: str | None = "",
        **facts: Any,
    ) -> OpDef:
        """The OpDef; ``facts`` are fields of it.

        Args:
          gradient: the kind of every input's gradient, or input -> kind where it is not none.
          traits: without ``no_gradient`` where no input has one.
          decomposed: whether there is a decomposition.
          reference: empty for the function of ``oracles`` that has the op's name, if there are any.
        """
        function = snake(self.name.rpartition(".")[2])
        kinds = {a.name: gradient if isinstance(gradient, str) else gradient.get(a.name, "none") for a in inputs}
        oracle = f"{self.oracles}:{function}" if self.oracles else None
        flows = any(kind != "none" for kind in kinds.values())
        return OpDef(
            self.name,
            inputs=inputs,
            outputs=outputs,
            attrs=attrs,
            gradient=f"{self.generated}.gradients:{function}" if flows else None,
            gradient_kinds=kinds,
            traits=frozenset(traits if flows else (*traits, "no_gradient")),
            effects=frozenset(effects),
            decomposition=f"{self.generated}.decompositions:{function}" if decomposed else None,
            reference=oracle if reference == "" else reference,
            package=self.generated.partition(".")[0],
            source=self.spec,
            **facts,
        )


#: Op type -> its row.
Rows: TypeAlias = Mapping[str, Callable[[OpRow], OpDef]]


def op_table(generated: str, files: Mapping[str, tuple[str, Rows]]) -> dict[str, Callable[[], OpDef]]:
    """Op type -> what builds its OpDef, of all files: spec -> the module of its oracles, and its rows.

    Args:
      generated: dotted name of the package that holds the gradients and decompositions.
    """
    return {
        name: partial(_build, row, name, generated, spec, oracles)
        for spec, (oracles, rows) in files.items()
        for name, row in rows.items()
    }


def _build(row: Callable[[OpRow], OpDef], *facts: str) -> OpDef:
    return row(OpRow(*facts))


#: Rows ``"name": "module:attribute"``, or ``"module": {"tf tf.math": "name other=attribute"}``: the names that each of these
#: namespaces has of the module, ``tf`` being the root. The attribute is said where it is not the name.
Names: TypeAlias = Mapping[str, str | Mapping[str, str]]


def spelled_out(table: Names) -> dict[str, str]:
    """Name -> ``"module:attribute"``."""
    found = {}
    for key, value in table.items():
        if isinstance(value, str):
            found[key] = value
        else:
            for spaces, words in value.items():
                found.update(names_of(key, spaces, words))
    return found


def names_of(module: str, spaces: str, words: str) -> Iterator[tuple[str, str]]:
    """The names that namespaces have of a module, each with its ``"module:attribute"``."""
    for space in spaces.split():
        for word in words.split():
            name, _, attribute = word.partition("=")
            yield f"{space}.{name}".removeprefix("tf."), f"{module}:{attribute or name}"
