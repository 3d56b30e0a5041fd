"""Files a person fills in: functions that the specs name and the files lack are appended, no line is ever changed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphdock.contracts.opdef import VERBS
from graphdock.errors import OpSpecError

from graphdock_opgen.docs import shape_words
from graphdock_opgen.library import Library
from graphdock_opgen.model import ArgSpec
from graphdock_opgen.names import local
from graphdock_opgen.op import GradEntry, Op
from graphdock_opgen.render import environment

__all__ = ["Addition", "missing_functions", "plan_stubs", "signature_errors", "write_stubs"]


@dataclass(frozen=True, slots=True)
class Addition:
    """Text to append to a file; ``head`` begins a file that does not exist. ``names`` are the functions it adds."""

    path: Path
    head: str
    text: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A gradient function that a spec expects in PKGDIR/gradients.py."""

    op: Op
    entry: GradEntry

    @property
    def name(self) -> str:
        return self.entry.value

    @property
    def params(self) -> str:
        outputs = self.op.spec.outputs
        if any(o.arity.kind == "many" for o in outputs):
            return "op, *grads"
        return ", ".join(["op", *(local(f"grad_{o.name}") for o in outputs)])


def _wanted(library: Library) -> Iterator[_Wanted]:
    seen = set()
    for op in library.ops:
        for entry in op.entries:
            if entry.kind == "fn" and ":" not in entry.value and entry.value not in seen:
                seen.add(entry.value)
                yield _Wanted(op, entry)


def plan_stubs(library: Library) -> list[Addition]:
    """Return what is to be appended to PKGDIR/gradients.py and, for a package of its own namespace, PKGDIR/kernels.py."""
    out = []
    gradients = library.directory / "gradients.py"
    present = _functions(gradients)
    wanted = [w for w in _wanted(library) if w.name not in present]
    if wanted:
        text = "".join(_gradient_stub(w) for w in wanted)
        out.append(
            Addition(
                gradients,
                _render("stubs/gradients_head.py.j2", package=library.package),
                text,
                tuple(w.name for w in wanted),
            )
        )
    kernels = library.directory / "kernels.py"
    if not library.is_bare and not (library.directory / "kernels").is_dir():
        have = {*_functions(kernels), *_kernel_ops(kernels)}
        ops = [
            op
            for op in library.ops
            if VERBS[op.spec.executes].kernel and not op.spec.decompose and op.type not in have and op.snake not in have
        ]
        if ops:
            text = "".join(_kernel_stub(op, library) for op in ops)
            head = _render("stubs/kernels_head.py.j2", package=library.package)
            out.append(Addition(kernels, head, text, tuple(op.snake for op in ops)))
    return out


def write_stubs(additions: list[Addition]) -> list[Path]:
    """Append; the existing text stays as it is, byte for byte."""
    for addition in additions:
        before = addition.path.read_text(encoding="utf-8") if addition.path.is_file() else addition.head
        if before and not before.endswith("\n"):
            before += "\n"
        addition.path.write_text(before + addition.text, encoding="utf-8", newline="\n")
    return [a.path for a in additions]


def _render(template: str, /, **context: object) -> str:
    return environment().get_template(template).render(**context)


def _gradient_stub(wanted: _Wanted) -> str:
    op, names = wanted.op, wanted.entry.inputs
    outputs = op.spec.outputs
    if "*grads" in wanted.params:
        grads = "grads, one or None per output: " + ", ".join(map(_words, outputs))
    else:
        grads = ", ".join(f"grad_{_words(o)}" for o in outputs)
    return _render(
        "stubs/gradient.py.j2",
        name=wanted.name,
        params=wanted.params,
        type=op.type,
        inputs=names,
        source=f"{op.file}:{op.line}",
        arguments=", ".join(_words(a) for a in op.spec.inputs),
        grads=grads,
        returns=_returns(op, names),
    )


def _returns(op: Op, names: tuple[str, ...]) -> str:
    def one(name: str) -> str:
        arg = op.input(name)
        return (
            f"a list of tensors like {name}"
            if arg is not None and arg.arity.kind == "many"
            else f"a tensor of {name}'s shape and dtype"
        )

    return one(names[0]) if len(names) == 1 else "a list: " + ", ".join(one(n) for n in names)


def _words(arg: ArgSpec) -> str:
    return f"{arg.name} {arg.shape or '(any shape)'} {arg.dtype}"


def _kernel_stub(op: Op, library: Library) -> str:
    arguments = [local(a.name) + ("..." if a.arity.kind != "one" else "") for a in (*op.spec.inputs, *op.spec.outputs)]
    return _render(
        "stubs/kernel.py.j2",
        name=op.snake,
        type=op.type,
        package=library.package,
        summary=op.spec.summary.strip(),
        arguments=arguments,
        outputs=", ".join(f"{o.name} ({shape_words(o.shape)})" for o in op.spec.outputs) or "nothing",
        attrs=", ".join(f'ctx.attr("{a.name}")' for a in op.spec.attrs) or "none",
    )


def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}


def _kernel_ops(path: Path) -> set[str]:
    """First arguments of calls of KernelDef."""
    if not path.is_file():
        return set()
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if (
            isinstance(node, ast.Call)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            found.add(node.args[0].value)
    return found


def signature_errors(library: Library, report: Callable[[OpSpecError], None]) -> None:
    """Functions of PKGDIR/gradients.py that no longer take what the spec gives them."""
    path = library.directory / "gradients.py"
    present = _functions(path)
    for wanted in _wanted(library):
        function = present.get(wanted.name)
        if function is None:
            continue
        arguments = function.args
        takes = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        star = arguments.vararg is not None
        expected = wanted.params
        needs_star = "*grads" in expected
        required = len(takes) - len(arguments.defaults)
        given = expected.count(",") + 1
        fits = (star and required <= 1 + (given - 1) * (not needs_star)) or (
            not needs_star and required <= given <= len(takes)
        )
        if not fits:
            shown = ", ".join([*takes, *([f"*{arguments.vararg.arg}"] if arguments.vararg else [])])
            name = wanted.name
            report(
                wanted.op.document.error(
                    wanted.entry.path,
                    f"{wanted.op.type} calls {name}({expected}), but {path.name}:{function.lineno} has {name}({shown})",
                    hint=f"change line {function.lineno} of {path.name} yourself: opgen never edits it",
                )
            )


def missing_functions(library: Library, report: Callable[[OpSpecError], None]) -> None:
    """``"module:name"`` strings that point into this package at something that is not there."""
    present: dict[Path, set[str]] = {}

    def lack(target: str) -> str | None:
        """Return what is missing: None where the target is there, or is of another package."""
        module, _, name = target.partition(":")
        path = _module_path(library, module)
        if path is None:
            return None
        if path not in present:
            present[path] = _names(path) if path.is_file() else set()
        if name in present[path] or "*" in present[path]:
            return None
        shown = path.relative_to(library.directory).as_posix()
        return f"{shown} has no {name!r}" if path.is_file() else f"there is no {shown}"

    for op in library.ops:
        targets = [
            ((*op.path, k), v) for k, v in (("shape_fn", op.spec.shape_fn), ("reference", op.spec.reference)) if v
        ]
        targets += [(e.path, e.value) for e in op.entries if e.kind == "fn" and ":" in e.value]
        for at, target in targets:
            what = lack(target)
            if what is not None:
                report(op.document.error(at, f"{op.type} names {target!r}, but {what}"))
    names = library.names
    for name, target in names.targets.items():
        what = lack(target)
        if what is not None:
            message = f"{name!r} stands for {target!r}, but {what}"
            file, line = names.places[name]
            report(OpSpecError(message, file=file, line=line, column=1))


def _module_path(library: Library, module: str) -> Path | None:
    """The file of a module of this package; None for others."""
    prefix = library.package + "."
    if not module.startswith(prefix):
        return None
    parts = module.removeprefix(prefix).split(".")
    base = library.directory.joinpath(*parts)
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def _names(path: Path) -> set[str]:
    """Names that a module binds at its top level."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update((a.asname or a.name).partition(".")[0] for a in node.names)
        elif isinstance(node, ast.Assign):
            found.update(t.id for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found
