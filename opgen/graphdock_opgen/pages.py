"""Pages of reference from a checked library: one of Markdown per spec, written when a person or the site asks."""

from __future__ import annotations

from graphdock_opgen import docs, escape
from graphdock_opgen.library import Library, SpecFile
from graphdock_opgen.model import ArgSpec, AttrSpec
from graphdock_opgen.op import Op
from graphdock_opgen.pretty import literal
from graphdock_opgen.render import render

__all__ = ["INDEX", "render_index", "render_pages"]

#: The file of :func:`render_index`. No spec has its name: those are names of modules.
INDEX = "all-ops.md"


def render_pages(library: Library) -> dict[str, str]:
    """File name -> text, for every spec."""
    return {f"{file.stem}.md": _page(file) for file in library.files}


def render_index(library: Library) -> str:
    """A page of all ops by name, each with a link to its place on the page of its spec."""
    ops = [
        {"type": op.type, "page": f"{file.stem}.md", "anchor": _anchor(op), "summary": op.spec.summary}
        for file in library.files
        for op in file.ops
    ]
    return render("library/index.md.j2", package=library.package, ops=sorted(ops, key=lambda op: op["type"].lower()))


def _anchor(op: Op) -> str:
    return op.type.lower().replace(".", "")


def _page(file: SpecFile) -> str:
    ops = []
    for op in file.ops:
        rows = [_row(op, a, "") for a in op.spec.inputs]
        rows += [_cells(escape.code(a.name), a.type, "", _attr_words(a, op)) for a in op.spec.attrs]
        rows += [_row(op, a, "output. ") for a in op.spec.outputs]
        types = [
            escape.line(f"`{t}`: {docs.dtype_words(op, t)}" + (f" (default {s.default})" if s.default else ""))
            for t, s in op.spec.types.items()
        ]
        ops.append(
            {
                "type": op.type,
                "anchor": _anchor(op),
                "spec": op.spec,
                "call": f"{op.function}({', '.join(docs.signature(op))})",
                "endpoints": _joined([escape.code(e.name) for e in op.spec.api.endpoints]),
                "rows": rows,
                "type_lines": types,
                "where": op.spec.dims.where,
                "gradient": docs.gradient_words(op),
                "traits": ", ".join(op.spec.traits.names()),
            }
        )
    return render("library/page.md.j2", source=file.name, ops=ops)


def _joined(parts: list[escape.Landed], by: str = ", ") -> escape.Landed:
    return escape.Landed(by.join(parts))


def _cells(*cells: str) -> escape.Landed:
    """A row of a table."""
    return escape.Landed(f"| {_joined([escape.cell(c) for c in cells], ' | ')} |")


def _row(op: Op, arg: ArgSpec, prefix: str) -> escape.Landed:
    mark = {
        "one": "",
        "optional": " (optional)",
        "many": f" (list of {arg.arity.many.count})" if arg.arity.many else "",
    }[arg.arity.kind]
    shape = escape.code(arg.shape) if arg.shape else ""
    return _cells(f"{escape.code(arg.name)}{mark}", arg.dtype, shape, f"{prefix}{arg.doc}".strip())


def _attr_words(attr: AttrSpec, op: Op) -> str:
    default = (
        "inferred"
        if attr.name in op.inferred
        else ("required" if attr.required else f"default {literal(attr.default)}")
    )
    return f"{attr.doc} ({default})".strip()
