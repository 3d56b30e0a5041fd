"""Check of what an op does, as its spec says it: verb, effects, bodies, handles, formulas, identity and neutral elements."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphdock.contracts.opdef import ACCESSES, ANYONE
from graphdock.contracts.resource import VARIABLE
from graphdock.contracts.scalar_formula import AXIS_WORDS, FUNCTIONS, NODES, REGION_FUNCTIONS
from graphdock.errors import did_you_mean

from graphdock_opgen import expr
from graphdock_opgen.op import Place

__all__ = ["check_semantics"]

#: Namespace of the host's own specs, whose ops may have any verb.
HOST_NAMESPACE = "core"
_WITH_BODIES = ("branch", "loop", "call")


def check_semantics(place: Place) -> None:
    """Raise OpSpecError at the first of these facts that contradicts the rest of the op."""
    _verb(place)
    _handle_op(place)
    _handles(place)
    _bodies(place)
    _formula(place)
    _region(place)
    _elements(place)


def _verb(place: Place) -> None:
    spec = place.spec
    if spec.executes not in ANYONE and place.namespace != HOST_NAMESPACE:
        place.fail(
            "executes",
            message=f"only the host's own ops execute as {spec.executes}",
            hint=f"one of {', '.join(ANYONE)}",
        )
    if spec.executes == "alias" and (len(spec.inputs) == 0 or len(spec.outputs) != 1):
        place.fail("executes", message="an alias has one output, which is its first input")
    if (spec.host_fn is not None) != (spec.executes == "host"):
        place.fail(
            "host_fn" if spec.host_fn else "executes", message="host_fn and 'executes: host' go together", key=True
        )
    if spec.host_fn is not None:
        place.home.check(place.source("host_fn", text=spec.host_fn))
    if spec.evaluate is not None:
        place.home.check(place.source("evaluate", text=spec.evaluate))
    if spec.stacked is not None:
        place.home.check(place.source("stacked", text=spec.stacked))
    if spec.traits.pure and (spec.effects or any(a.access for a in spec.inputs)):
        place.fail("traits", "pure", message="an op with effects is not pure", key=True)


def _handles(place: Place) -> None:
    for i, arg in enumerate(place.spec.inputs):
        if arg.access is not None and arg.dtype != "resource":
            place.fail("inputs", i, "access", message="only a handle, of dtype resource, is accessed", key=True)
        if arg.resource is not None and arg.dtype != "resource":
            place.fail("inputs", i, "resource", message="only a handle, of dtype resource, names a resource", key=True)
        if arg.resource is not None:
            _kind(place, ("inputs", i, "resource"), arg.resource)
        if arg.access is None and arg.dtype == "resource":
            place.fail(
                "inputs",
                i,
                "name",
                message=f"{place.spec.name} does not say what it does through the handle {arg.name}",
                hint=f"give it access: {', '.join(ACCESSES)}",
            )
    for i, out in enumerate(place.spec.outputs):
        if out.access is not None:
            place.fail("outputs", i, "access", message="only inputs have an access", key=True)
        if out.resource is not None:
            place.fail(
                "outputs",
                i,
                "resource",
                message="what a handle names stands at the op",
                hint="resource: beside executes:",
                key=True,
            )
        if out.dtype == "resource" and place.spec.executes not in ("handle", "alias"):
            place.fail("outputs", i, "dtype", message="only an op that executes as handle makes handles")


def _handle_op(place: Place) -> None:
    """An op of the verb ``handle``: no inputs, one handle, and the attributes that say which resource of its kind."""
    spec = place.spec
    if (spec.resource is not None) != (spec.executes == "handle"):
        place.fail(
            "resource" if spec.resource else "executes", message="resource and 'executes: handle' go together", key=True
        )
    if spec.resource is None:
        return
    if spec.inputs or len(spec.outputs) != 1 or spec.outputs[0].dtype != "resource":
        place.fail("executes", message="an op that executes as handle has no inputs and one output, of dtype resource")
    if place.namespace != HOST_NAMESPACE and spec.resource == VARIABLE.name:
        place.fail(
            "resource",
            message="handles to variables are the host's own",
            hint="name a kind that your package registers",
        )
    _kind(place, ("resource",), spec.resource)
    for name in ("container", "shared_name"):
        attr = place.attrs.get(name)
        if attr is None or attr.type != "string" or attr.default != "":
            place.fail(
                "executes",
                message=f"a handle needs the attribute {name}, which says what it names",
                hint=f'{{name: {name}, type: string, default: ""}}',
            )


def _kind(place: Place, path: tuple[str | int, ...], name: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")):
        place.fail(*path, message=f"{name!r} is no name of a resource kind", hint="such as mypkg.Table")


def _bodies(place: Place) -> None:
    spec = place.spec
    if bool(spec.bodies) != (spec.executes in _WITH_BODIES):
        place.fail(
            "bodies" if spec.bodies else "executes",
            message=f"bodies go with the verbs {', '.join(_WITH_BODIES)}",
            key=True,
        )
    functions = [a.name for a in spec.attrs if a.type == "func"]
    for name, body in spec.bodies.items():
        _known(place, ("bodies", name), name, functions, "func attribute", key=True)
        _known(place, ("bodies", name, "takes"), body.takes, [a.name for a in spec.inputs], "input")
        if body.gives is not None:
            _known(place, ("bodies", name, "gives"), body.gives, [a.name for a in spec.outputs], "output")


def _formula(place: Place) -> None:
    spec = place.spec
    if spec.scalar is None:
        return
    source = place.source("scalar", text=spec.scalar)
    if len(spec.outputs) != 1 or not spec.traits.elementwise:
        source.fail("only an elementwise op of one output has a scalar formula")
    tree = source.parse(NODES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | None):
            source.fail(f"{node.value!r} is no number", node)
    known = [*(a.name for a in spec.inputs), *(a.name for a in spec.attrs)]
    expr.check_names(source, tree, known, "input or attribute", tuple(FUNCTIONS))
    expr.check_arity(source, tree, FUNCTIONS)


def _region(place: Place) -> None:
    spec = place.spec
    form = spec.region
    if form is None:
        return
    if spec.scalar is not None:
        place.fail("region", message="an op with a scalar formula needs no region", key=True)
    handles = [a.name for a in spec.inputs if a.dtype == "resource"]
    writes = sorted(form.writes) == sorted(handles) and all(
        a.access == "writes" for a in spec.inputs if a.name in handles
    )
    if not writes:
        place.fail("region", "writes", message=f"expected a formula for each handle: {', '.join(handles)}", key=True)
    if not spec.traits.pure and list(spec.effects) != ([] if handles else ["random"]):
        message = "only an op that is pure, or draws or writes variables and does nothing else, has a region"
        place.fail("region", message=message, key=True)
    inputs, outputs = [a.name for a in spec.inputs], [a.name for a in spec.outputs]
    if set(form.outputs) != set(outputs):
        place.fail("region", "outputs", message=f"expected a formula for each of {', '.join(outputs)}", key=True)
    for i, name in enumerate(form.leading):
        _known(place, ("region", "leading", i), name, inputs, "input")
    for name in form.when:
        attrs = [*(a.name for a in spec.attrs), *spec.types, *(a.name for a in spec.inputs if a.memory == "host")]
        _known(place, ("region", "when", name), name, attrs, "attribute", key=True)
    for name, by in form.gathers.items():
        _known(place, ("region", "gathers", name), name, inputs, "input", key=True)
        _known(place, ("region", "gathers", name), by, form.leading, "leading input")
    _space(place, inputs)
    known = [*inputs, *(a.name for a in spec.attrs)]
    for part, formulas in (("let", form.let), ("outputs", form.outputs), ("writes", form.writes)):
        for name, text in formulas.items():
            if part == "let" and name in known:
                place.fail(
                    "region", part, name, message=f"{name} is an input, an attribute or a let before it", key=True
                )
            source = place.source("region", part, name, text=text)
            tree = source.parse(NODES)
            words = [*known, *AXIS_WORDS, *form.space]
            expr.check_names(source, tree, words, "input, attribute or let", tuple(REGION_FUNCTIONS))
            expr.check_arity(source, tree, REGION_FUNCTIONS)
            for node in ast.walk(tree) if spec.traits.pure or handles else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "uniform":
                    source.fail("a pure op draws nothing", node)
            if part == "let":
                known.append(name)


def _space(place: Place, inputs: Sequence[str]) -> None:
    """Each input of an op with a space of its own says on which of its axes it lies."""
    form = place.spec.region
    assert form is not None
    if set(form.axes) != set(inputs if form.space else ()):
        place.fail("region", "axes", message="expected the axes of each input, of an op that names its space", key=True)
    switches = [a.name for a in place.spec.attrs if a.type == "bool"]
    for name, text in form.axes.items():
        source = place.source("region", "axes", name, text=text)
        stack = [source.parse((ast.IfExp, ast.List, ast.Name, ast.Load))]
        while stack:
            match stack.pop():
                case ast.IfExp(test=ast.Name(id=switch), body=body, orelse=orelse) if switch in switches:
                    stack += [body, orelse]
                case ast.List(elts=names) if all(isinstance(e, ast.Name) and e.id in form.space for e in names):
                    pass
                case tree:
                    source.fail("expected a list of axes, or one for either value of a bool attribute", tree)


def _elements(place: Place) -> None:
    spec = place.spec
    names = [a.name for a in spec.inputs]
    if spec.identity is not None:
        _known(place, ("identity",), spec.identity, names, "input")
    for name in spec.neutral:
        _known(place, ("neutral", name), name, names, "input", key=True)
    for name in spec.constants:
        _known(place, ("constants", name), name, names, "input", key=True)
        for value in spec.constants[name]:
            try:
                float(value)
            except ValueError:
                place.fail("constants", name, value, message=f"{value!r} is no number", key=True)
    if spec.constants and (len(spec.inputs) != 2 or len(spec.outputs) != 1):
        place.fail("constants", message="only an op of two inputs and one output is others for constants", key=True)
    if spec.sum is not None and (len(spec.outputs) != 1 or any(a.arity.kind != "one" for a in spec.inputs)):
        place.fail("sum", message="only an op of single inputs and one output has an op that sums it", key=True)
    if spec.joint is not None and {"transpose_a", "transpose_b"} - {a.name for a in spec.attrs}:
        place.fail(
            "joint", message="only a product with the attributes transpose_a and transpose_b is joined", key=True
        )
    if spec.neutral and (len(spec.inputs) != 2 or len(spec.outputs) != 1):
        place.fail("neutral", message="only an op of two inputs and one output has neutral elements", key=True)


def _known(
    place: Place, path: tuple[str | int, ...], name: str, known: Sequence[str], what: str, *, key: bool = False
) -> None:
    if name not in known:
        place.fail(*path, message=f"{place.spec.name} has no {what} {name!r}", hint=did_you_mean(name, known), key=key)
