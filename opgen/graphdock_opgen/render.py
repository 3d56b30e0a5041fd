"""From a checked library to the text of every generated file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import graphdock_templates
import jinja2
from graphdock.errors import OpSpecError

from graphdock_opgen import docs, escape
from graphdock_opgen.functions import GRADIENT_ERROR, import_lines
from graphdock_opgen.gradients import Function, decomposition_function, gradient_function
from graphdock_opgen.library import Library, SpecFile
from graphdock_opgen.op import Op
from graphdock_opgen.pretty import literal, parameters, pretty, statement
from graphdock_opgen.rows import table

__all__ = ["environment", "render", "render_library"]


@cache
def environment() -> jinja2.Environment:
    """Jinja2 over the package's templates; an undefined name is an error, and so is text that was not escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(graphdock_templates.DIRECTORY),
        undefined=jinja2.StrictUndefined,
        finalize=escape.landed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters.update(escape.FILTERS)
    return made


def render(name: str, source: str = "specs/*.yaml", **context: Any) -> str:
    """The text of a template; at most two lines in a row are empty, and none at the end."""
    text = environment().get_template(name).render(source=source, **context)
    lines = [line.rstrip() for line in text.splitlines()]
    out: list[str] = []
    for line in lines:
        if line or len(out) < 2 or out[-1] or out[-2]:
            out.append(line)
    return "\n".join(out).strip("\n") + "\n"


def render_library(library: Library, report: Callable[[OpSpecError], None]) -> dict[str, str]:
    """Path below the package -> text, for every generated file. Faults found while rendering formulas are reported."""
    gradients = _functions(library, (op for op in library.ops if op.has_gradient), gradient_function, report)
    decompositions = _functions(
        library, (op for op in library.ops if op.spec.decompose), decomposition_function, report
    )
    out = {"__init__.py": render("library/init.py.j2", package=library.package)}
    out["opdefs.py"] = render("library/opdefs.py.j2", package=library.package, **table(library))
    out["endpoints.py"] = render(
        "library/endpoints.py.j2", package=library.package, endpoints=pretty(endpoints(library))
    )
    out["gradients.py"] = render_gradients(library, gradients)
    out["decompositions.py"] = render(
        "library/decompositions.py.j2",
        package=library.package,
        imports=_imports(library, decompositions),
        functions=decompositions,
    )
    for file in library.files:
        out[f"{file.module}.py"] = render_wrappers(library, file)
    return {f"_gen/{name}": text for name, text in sorted(out.items())}


def _functions(
    library: Library, ops: Any, make: Callable[[Op, Library], Function], report: Callable[[OpSpecError], None]
) -> list[Function]:
    out = []
    for op in ops:
        try:
            out.append(make(op, library))
        except OpSpecError as e:
            report(e)
    return out


# wrappers


def endpoints(library: Library) -> dict[str, dict[str, str]]:
    """Module -> namespaces -> the public names that they have of its wrappers (:data:`graphdock.contracts.op_table.Names`)."""
    found: dict[str, dict[str, list[str]]] = {}
    for op in library.ops:
        spaces: dict[str, list[str]] = {}
        for endpoint in op.spec.api.endpoints:
            space, _, name = f"tf.{endpoint.name}".rpartition(".")
            spaces.setdefault(name if name == op.function else f"{name}={op.function}", []).append(space)
        rows = found.setdefault(f"{library.package}._gen.{op.module}", {})
        for word, each in spaces.items():
            rows.setdefault(" ".join(sorted(each)), []).append(word)
    return {
        module: {s: " ".join(sorted(words)) for s, words in sorted(rows.items())}
        for module, rows in found.items()
        if rows
    }


def render_wrappers(library: Library, file: SpecFile) -> str:
    """``_gen/<file>_ops.py``."""
    ops = []
    for op in file.ops:
        returns, tuple_, fields = docs.typed_returns(op)
        ops.append(
            {
                "function": op.function,
                "signature": parameters(docs.typed_signature(op), len(op.function) + 5, len(returns) + 6),
                "returns": returns,
                "tuple": tuple_,
                "fields": fields,
                "doc": docs.docstring(op),
                "body": statement(f"return {_call(op)}"),
            }
        )
    import_ops = "from graphdock.ops import apply as _ops" if library.is_core else "from graphdock import ops as _ops"
    return render(
        "library/wrappers.py.j2",
        source=file.name,
        count=len(ops),
        hidden=any(not op.spec.api.endpoints for op in file.ops),
        import_ops=import_ops,
        imports=_type_imports(ops),
        ops=ops,
    )


#: Module -> names of it that annotations of wrappers may have, in the order of imports.
_TYPES = {
    "collections.abc": ("Callable", "Sequence"),
    "typing": ("Any", "Literal", "NamedTuple"),
    "": (),
    "graphdock": ("Operation", "Tensor"),
    "graphdock.typing": ("DTypeLike", "ShapeLike", "TensorLike"),
}


def _type_imports(ops: list[dict[str, Any]]) -> list[str]:
    """The imports that a module's annotations need; checkers alone run them."""
    text = " ".join([o["signature"] + " " + o["returns"] for o in ops] + [t for o in ops for _, t in o["fields"]])
    used = {*re.findall(r"\w+", text), *("NamedTuple" for o in ops if o["tuple"])}
    lines = []
    for module, names in _TYPES.items():
        wanted = ", ".join(n for n in names if n in used)
        if wanted or not module:
            lines.append(f"from {module} import {wanted}" if module else "")
    return lines[1:] if not lines[0] else lines


def _call(op: Op) -> str:
    """The call of a wrapper's op; one whose parameters have the names of the op's own hands them on as they are."""
    arguments = [literal(op.type), *(f"{p.of}={p.name}" for p in op.params)]
    if all(p.of == p.name for p in op.params):
        arguments[1:] = ["**locals()"]
    picked = f".{op.spec.api.returns}" if op.spec.api.returns and len(op.spec.outputs) > 1 else ""
    return f"_apply_op({', '.join(arguments)}){picked}"


# gradients


def render_gradients(library: Library, functions: list[Function]) -> str:
    """``_gen/gradients.py``."""
    return render(
        "library/gradients.py.j2",
        package=library.package,
        imports=_imports(library, functions),
        todo=any(GRADIENT_ERROR in f.imports for f in functions),
        functions=functions,
    )


#: Functions of a module that share an import from here on have it at the top.
_MANY = 10


def _imports(library: Library, functions: list[Function]) -> list[str]:
    """The import block of a module of functions. What few of them call of their own package they import when they are called: a
    program that has one gradient loads what that one needs."""
    users = Counter(line for f in functions for line in f.imports)
    late = {line for line, count in users.items() if count < _MANY and line.startswith(f"from {library.package}.")}
    for function in functions:
        function.body[:0] = import_lines(function.imports & late)
    return import_lines(users.keys() - late)
