"""The body of each op's gradient function, and of its decomposition, from formulas, ops, functions and stubs."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from graphdock.errors import did_you_mean

from graphdock_opgen.expr import Source
from graphdock_opgen.formula import Scope, render
from graphdock_opgen.functions import GRADIENT_ERROR, IMPORT_MODULE, OPS
from graphdock_opgen.library import Library
from graphdock_opgen.names import is_name, local
from graphdock_opgen.op import GradEntry, Op
from graphdock_opgen.pretty import statement, string

__all__ = ["Function", "decomposition_function", "gradient_function"]


@dataclass
class Function:
    """A function to be rendered: ``def name(params):`` and its lines, and the import lines that it needs."""

    name: str
    params: str
    doc: str
    body: list[str]
    imports: set[str] = field(default_factory=set)


def gradient_function(op: Op, library: Library) -> Function:
    """The gradient function of an op that has one. Raises OpSpecError where a formula or a named op does not fit."""
    return _Gradient(op, library).build()


class _Gradient:
    def __init__(self, op: Op, library: Library) -> None:
        self.op, self.library = op, library
        spec = op.spec
        self.simple_inputs = all(a.arity.kind == "one" for a in spec.inputs)
        self.simple_outputs = all(a.arity.kind == "one" for a in spec.outputs)
        spec_names = (
            *(a.name for a in (*spec.inputs, *spec.outputs)),
            *(a.name for a in spec.attrs),
            *spec.types,
            *op.lets,
        )
        reserved: tuple[str, ...] = ("op", "grads", "result")
        self.locals: dict[str, str] = {}
        for name in spec_names:
            self.locals[name] = local(name, (*reserved, *self.locals.values()))
        self.grads: dict[str, str] = {}
        for out in spec.outputs:
            self.grads[out.name] = local(f"grad_{out.name}", (*reserved, *self.locals.values(), *self.grads.values()))
        self.function = Function(op.snake, "", "", [])
        self.scope = Scope(
            tensors={a.name: self.locals[a.name] for a in (*spec.inputs, *spec.outputs)}
            | {f"g.{o}": v for o, v in self.grads.items()},
            statics={n: self.locals[n] for n in (*(a.name for a in spec.attrs), *spec.types)},
            functions=library.functions,
            faulty=library.faulty,
            optional=frozenset(a.name for a in spec.inputs if a.arity.kind == "optional"),
            grads=tuple(self.grads),
            imports=self.function.imports,
        )
        self.taken = {*reserved, *self.locals.values(), *self.grads.values()}
        self.used: set[str] = set()
        self.statements: list[str] = []
        self.modules: dict[str, str] = {}

    def build(self) -> Function:
        op, function = self.op, self.function
        if all(e.kind in ("none", "todo") for e in op.entries):
            return self.build_todo()
        lets = self.render_lets()
        results = self.render_entries()
        needed = self.needed_lets(lets)
        body = self.unpack()
        body += [f"{self.locals[n]} = {lets[n][0]}" for n in op.lets if n in needed]
        body += [f"{held} = _import_module({string(module)})" for module, held in self.modules.items()]
        body += self.statements
        body += self.returned(results)
        function.params = "op, " + ", ".join(self.grads.values()) if self.simple_outputs else "op, *grads"
        if not op.spec.outputs:
            function.params = "op"
        function.doc = "; ".join(f"{', '.join(e.inputs)}: {e.kind}" for e in op.entries)
        function.body = [line for text in body for line in statement(text)]
        return function

    def build_todo(self) -> Function:
        """A function that raises: every gradient the op could have is still to be written.

        Where some inputs have one, ``gradients()`` itself raises for the others, by ``OpDef.gradient_kinds``.
        """
        waiting = [e for e in self.op.entries if e.kind == "todo"]
        function, names = self.function, ", ".join(n for e in waiting for n in e.inputs)
        function.imports.add(GRADIENT_ERROR)
        function.params = "op, *grads"
        function.doc = f"{names}: todo"
        function.body = [f"raise _todo({string(self.op.type)}, {string(names)}, {string(waiting[0].value)})"]
        return function

    def render_lets(self) -> dict[str, tuple[str, set[str]]]:
        lets: dict[str, tuple[str, set[str]]] = {}
        for name, text in self.op.lets.items():
            self.scope.used = set()
            rendered, static = render(self.op.source(("gradient", "let", name), text), self.scope)
            lets[name] = (rendered, self.scope.used)
            self.scope.tensors.pop(name, None)
            (self.scope.statics if static else self.scope.tensors)[name] = self.locals[name]
        return lets

    def needed_lets(self, lets: dict[str, tuple[str, set[str]]]) -> set[str]:
        needed: set[str] = set()
        for name in reversed(list(lets)):
            if name in self.used:
                needed.add(name)
                self.used |= lets[name][1]
        return needed

    def render_entries(self) -> dict[str, str | None]:
        """Source per input, None for no gradient."""
        results: dict[str, str | None] = {}
        grouped: dict[str, list[str]] = {}
        for entry in self.op.entries:
            if entry.kind == "op":
                grouped.setdefault(entry.value, []).extend(entry.inputs)
        for entry in self.op.entries:
            if entry.kind == "none":
                results |= dict.fromkeys(entry.inputs)
            elif entry.kind == "formula":
                self.formula(entry, results)
            elif entry.kind == "op" and entry.value in grouped:
                self.by_op(entry, grouped.pop(entry.value), results)
            elif entry.kind == "fn":
                self.by_function(entry, results)
            elif entry.kind == "todo":
                results |= dict.fromkeys(entry.inputs)
        return results

    def formula(self, entry: GradEntry, results: dict[str, str | None]) -> None:
        self.scope.used = set()
        text, _ = render(Source(entry.value, self.op.document, entry.path), self.scope)
        self.used |= self.scope.used
        if len(entry.inputs) > 1 and not text.isidentifier():
            text = self.bind(f"grad_{entry.inputs[0]}", text)
        results |= dict.fromkeys(entry.inputs, text)

    def bind(self, name: str, text: str) -> str:
        name = local(name, tuple(self.taken))
        self.taken.add(name)
        self.statements.append(f"{name} = {text}")
        return name

    def by_op(self, entry: GradEntry, served: list[str], results: dict[str, str | None]) -> None:
        source = Source(entry.value, self.op.document, entry.path)
        name = entry.value
        namespace = self.op.type.rpartition(".")[0]
        grad_op = self.library.all_ops.get(name) or self.library.all_ops.get(f"{namespace}.{name}")
        if grad_op is None and name in self.library.faulty:
            source.follow(f"the gradient op {name} has a fault of its own")
        if grad_op is None:
            source.fail(f"no op named {name!r}", hint=did_you_mean(name, self.library.all_ops))
            return
        arguments = [f"{string(grad_op.type)}"]
        for arg in grad_op.spec.inputs:
            text = self.match(arg.name)
            if text is None:
                if arg.arity.kind == "optional":
                    continue
                hint = "a gradient op's inputs are named like the op's inputs, outputs and attributes, or grad_<output>"
                source.fail(f"nothing of {self.op.type} matches input {arg.name!r} of {grad_op.type}", hint=hint)
            arguments.append(f"{arg.name}={text}")
        for attr in grad_op.spec.attrs:
            if attr.name in grad_op.inferred:
                continue
            if attr.name in self.scope.statics:
                self.used.add(attr.name)
                arguments.append(f"{attr.name}={self.scope.statics[attr.name]}")
            elif attr.required:
                source.fail(f"nothing of {self.op.type} matches attribute {attr.name!r} of {grad_op.type}")
        for free in grad_op.free_types:
            if free in self.scope.statics:
                self.used.add(free)
                arguments.append(f"{free}={self.scope.statics[free]}")
        outputs = [o.name for o in grad_op.spec.outputs]
        self.function.imports.add(OPS)
        text = f"_ops.apply_op({', '.join(arguments)})"
        if outputs == [] or (len(served) > len(outputs)):
            source.fail(
                f"{grad_op.type} has {len(outputs)} outputs, but serves {len(served)} inputs: {', '.join(served)}"
            )
        if len(outputs) == 1:
            results[served[0]] = text
            return
        result = self.bind(f"grads_{grad_op.snake}", text)
        for position, input_name in enumerate(served):
            index = position
            if len(served) < len(outputs):
                by_name = [f"grad_{input_name}", f"{input_name}_grad", f"d{input_name}", input_name]
                index = next((outputs.index(n) for n in by_name if n in outputs), position)
            results[input_name] = f"{result}[{index}]"

    def match(self, name: str) -> str | None:
        """Return what an input of a gradient op stands for."""
        scope = self.scope
        if name in scope.tensors and "." not in name:
            self.used.add(name)
            return scope.tensors[name]
        for out in self.grads:
            if name in (f"grad_{out}", f"{out}_grad", f"d{out}") or (
                len(self.grads) == 1 and name in ("grad", "grads")
            ):
                self.used.add(f"g.{out}")
                return scope.tensors[f"g.{out}"]
        for arg in self.op.spec.inputs:
            if name in (f"{arg.name}_shape", f"shape_{arg.name}"):
                self.used.add(arg.name)
                self.function.imports.add(OPS)
                return f"_ops.shape({self.locals[arg.name]})"
        if name in scope.statics:
            self.used.add(name)
            return scope.statics[name]
        return None

    def by_function(self, entry: GradEntry, results: dict[str, str | None]) -> None:
        target = (
            self.op.home.full(entry.value) if ":" in entry.value else f"{self.library.package}.gradients:{entry.value}"
        )
        module, _, name = target.partition(":")
        held = self.modules.setdefault(module, f"_fn{len(self.modules) or ''}")
        self.function.imports.add(IMPORT_MODULE)
        grads = ", ".join(["op", *self.grads.values()]) if self.simple_outputs else "op, *grads"
        text = f"{held}.{name}({grads})"
        if len(entry.inputs) == 1:
            results[entry.inputs[0]] = text
            return
        bound = self.bind(f"grads_{name}", text)
        for i, input_name in enumerate(entry.inputs):
            results[input_name] = f"{bound}[{i}]"

    def unpack(self) -> list[str]:
        """Statements that bind the names in use: inputs, outputs, attributes, and gradients that may be None."""
        spec, lines = self.op.spec, []
        for arg in spec.inputs:
            if arg.arity.kind == "optional":
                self.used.add(arg.name)
        inputs = [a.name for a in spec.inputs]
        used = [n for n in inputs if n in self.used]
        if self.simple_inputs and len(used) == len(inputs) > 1:
            lines.append(f"{', '.join(self.locals[n] for n in inputs)} = op.inputs")
        else:
            for i, name in enumerate(inputs):
                if name in used:
                    lines.append(
                        f"{self.locals[name]} = "
                        + (f"op.inputs[{i}]" if self.simple_inputs else f"op.arg({string(name)})")
                    )
        for i, out in enumerate(spec.outputs):
            if out.name in self.used:
                lines.append(f"{self.locals[out.name]} = {self.result(i)}")
        for name in (*(a.name for a in spec.attrs), *spec.types):
            if name in self.used:
                lines.append(f"{self.locals[name]} = op.get_attr({string(name)})")
        return lines + self.unpack_grads()

    def result(self, index: int) -> str:
        return (
            f"op.outputs[{index}]" if self.simple_outputs else f"op.result({string(self.op.spec.outputs[index].name)})"
        )

    def unpack_grads(self) -> list[str]:
        lines, outputs = [], self.op.spec.outputs
        start = "0"
        for i, out in enumerate(outputs):
            grad, used = self.grads[out.name], f"g.{out.name}" in self.used
            many = out.arity.kind == "many"
            end = (
                f"{start} + len({self.result(i)})"
                if many
                else (str(int(start) + 1) if start.isdigit() else f"{start} + 1")
            )
            end = end.removeprefix("0 + ")
            if used and many:
                piece = "grads" if len(outputs) == 1 else f"grads[{start}:{end}]"
                self.function.imports.add(OPS)
                lines.append(
                    f"{grad} = [_ops.zeros_like(o) if g is None else g for g, o in zip({piece}, {self.result(i)})]"
                )
            elif used:
                if not self.simple_outputs:
                    lines.append(f"{grad} = grads[{start}]")
                if len(outputs) > 1:
                    self.function.imports.add(OPS)
                    lines.append(f"{grad} = _ops.zeros_like({self.result(i)}) if {grad} is None else {grad}")
            start = end
        return lines

    def returned(self, results: dict[str, str | None]) -> list[str]:
        items = []
        for arg in self.op.spec.inputs:
            text = results[arg.name]
            if arg.arity.kind == "many":
                items.append(f"*{text}" if text is not None else f"*[None] * len(op.arg({string(arg.name)}))")
            elif arg.arity.kind == "optional":
                items.append(f"*([] if {self.locals[arg.name]} is None else [{text}])")
            else:
                items.append(str(text))
        return [f"return [{', '.join(items)}]"]


def decomposition_function(op: Op, library: Library) -> Function:
    """``def f(*, x, limit, T): ...; return [y]``: builds the op from others.

    Arguments are inputs, attributes and type variables.
    """
    spec = op.spec
    names = [*(a.name for a in spec.inputs), *(a.name for a in spec.attrs), *spec.types]
    locals_: dict[str, str] = {}
    for name in names:
        locals_[name] = local(name, tuple(locals_.values()))
    function = Function(
        op.snake, "*, " + ", ".join([*locals_.values(), "**_unused"]), f"Builds {op.type} from other ops.", []
    )
    scope = Scope(
        tensors={a.name: locals_[a.name] for a in spec.inputs},
        statics={n: locals_[n] for n in (*(a.name for a in spec.attrs), *spec.types)},
        functions=library.functions,
        faulty=library.faulty,
        optional=frozenset(a.name for a in spec.inputs if a.arity.kind == "optional"),
        imports=function.imports,
    )
    assigned: list[str] = []
    for i, text in enumerate(spec.decompose):
        source = op.source(("decompose", i), text)
        target, equals, right = text.partition("=")
        target = target.strip()
        if not equals or not is_name(target) or right.startswith("="):
            source.fail("a step of a decomposition is 'name = expression'")
        offset = len(text) - len(right)
        rendered, static = render(_Shifted(right, op.document, source.path, offset), scope)
        variable = local(target, ())
        function.body.append(f"{variable} = {rendered}")
        scope.statics.pop(target, None)
        scope.tensors.pop(target, None)
        (scope.statics if static else scope.tensors)[target] = variable
        assigned.append(target)
    for out in spec.outputs:
        if out.name not in assigned:
            op.document.fail(
                (*op.path, "decompose"), f"the decomposition of {op.type} assigns nothing to output {out.name!r}"
            )
    returned = [("*" if o.arity.kind == "many" else "") + local(o.name, ()) for o in spec.outputs]
    function.body.append(f"return [{', '.join(returned)}]")
    function.body = [line for text in function.body for line in statement(text)]
    return function


@dataclass(frozen=True, slots=True)
class _Shifted(Source):
    """The part of a text after ``shift`` characters."""

    shift: int = 0

    def fail(
        self, message: str, node: ast.AST | None = None, *, column: int | None = None, hint: str | None = None
    ) -> None:
        column = getattr(node, "col_offset", 0) if column is None else column
        lead = len(self.text) - len(self.text.lstrip())
        shown = " ".join(self.text.split())
        self.document.fail(
            self.path, f"{message}, in {shown!r}, column {column + 1}", hint=hint, offset=column + self.shift + lead
        )
