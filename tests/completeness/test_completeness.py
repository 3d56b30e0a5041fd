"""What must hold for every op, error and public name, so that nothing is half there."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import graphdock as tf
import pytest
from graphdock import errors
from graphdock.contracts.opdef import resolve
from graphdock.plugin.endpoints import read_table
from graphdock.plugin.host import default_host
from graphdock_opgen.library import load_library
from graphdock_opgen.pages import render_pages
from graphdock_opgen.spec_cases import spec_cases
from graphdock_opgen.spec_docs import documented_op

ROOT = Path(__file__).parents[2]
SOURCES = [
    *(ROOT / "host").rglob("*.py"),
    *(ROOT / "plugins").rglob("*.py"),
    *(ROOT / "opgen").rglob("*.py"),
]
HOST = tf.default_host()
MUTATING = {"AssignAddVariableOp", "AssignSubVariableOp"}
#: Ops that are about files, which a sample has none of: tests/tf1/train/test_saver_ops.py runs them.
ON_FILES = {"SaveV2", "RestoreV2", "MergeV2Checkpoints"}
#: Ops of histories and lists, which nobody can feed: tests/control_flow/test_scan_loop.py and tests/data/arrays run them.
OF_HISTORIES = {"AddLists", "HistoryStack", "HistoryUnstack"}


def opdefs():
    HOST.backend("cpu")
    HOST.backend("std")
    packages = {"graphdock", "graphdock_std"}
    return [d for d in map(HOST.ops.get, HOST.ops.names()) if d.package in packages]


OPS = opdefs()


@pytest.mark.parametrize("opdef", OPS, ids=lambda d: d.name)
def test_every_op_is_complete(opdef):
    assert documented_op(HOST.ops, opdef.name).summary, "a summary"
    for arg in (*opdef.inputs, *opdef.outputs):
        assert opdef.shape_fn or arg.shape is not None or arg in opdef.inputs or not opdef.verb.kernel, "a shape rule"
    floating = [a for a in opdef.inputs if a.dtype != "resource"]
    for arg in floating:
        kind = opdef.gradient_kinds.get(arg.name)
        kind = kind or ("no_gradient" if "no_gradient" in opdef.traits or opdef.gradient is None else None)
        assert kind is not None, f"a gradient decision for {arg.name}"
        assert not kind.startswith("todo") or opdef.verb.primitive, f"{arg.name}: {kind}"
    for target in (opdef.gradient, opdef.shape_fn, opdef.reference, opdef.decomposition):
        assert target is None or callable(resolve(target))
    if opdef.verb.kernel:
        wanted = {"cpu", "storage", "data"} if "host" in opdef.traits else {"cpu"}
        assert any(r.plugin in wanted for r in HOST.kernels.for_op(opdef.name)), "a cpu kernel"


@pytest.mark.parametrize("package", ["graphdock.ops", "graphdock_std"])
def test_every_op_with_a_kernel_has_samples_and_a_page(package):
    cases = spec_cases(package, HOST.ops.get)
    pages = "\n".join(render_pages(load_library(Path(importlib.import_module(package).__file__).parent)).values())
    top = package.partition(".")[0]
    for opdef in OPS:
        if opdef.package != top or not opdef.verb.kernel or opdef.name in MUTATING | ON_FILES | OF_HISTORIES:
            continue
        assert opdef.name in cases, opdef.name
        mutates = any(a.mutates for a in opdef.inputs)
        assert cases[opdef.name].get("samples") or mutates, f"{opdef.name} has no samples"
        assert opdef.name in pages, opdef.name


def test_every_error_is_raised_somewhere():
    """In the product, or in a template."""
    made: set[str] = set()
    for path in SOURCES:
        if path.name != "errors.py":
            made.update(re.findall(r"\b([A-Z]\w+)(?:\.unknown)?\(", path.read_text()))
    templates = " ".join(p.read_text() for p in (ROOT / "templates").rglob("*.j2"))
    declared = {
        c.__name__ for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.GraphdockError)
    }
    # the last one by graphdock_storage.checkpoint.files, which looks classes up by what the system says
    bases = {"GraphdockError", "UnavailableError", "PermissionDeniedError"}
    assert {n for n in declared - bases - made if f"{n}(" not in templates} == set()


def test_the_tree_in_the_docstring_is_the_tree():
    drawn = {}
    stack = []
    for line in errors.__doc__.splitlines():
        name = line.replace("│", " ").replace("├──", "   ").replace("└──", "   ")
        word = (name.split() + ["", ""])[1]  # behind its code
        if word in vars(errors) and inspect.isclass(getattr(errors, word)):
            depth = len(name) - len(name.lstrip())
            while stack and stack[-1][0] >= depth:
                stack.pop()
            drawn[word] = stack[-1][1] if stack else None
            stack.append((depth, word))
    for name, parent in drawn.items():
        if parent is not None:
            assert issubclass(getattr(errors, name), getattr(errors, parent)), (name, parent)
    classes = {c.__name__ for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.GraphdockError)}
    assert classes == set(drawn)


def test_every_public_name_resolves_and_is_documented():
    for name in dir(tf):
        value = getattr(tf, name)
        if callable(value):
            assert inspect.getdoc(value), f"tf.{name} has no docstring"


def test_every_endpoint_resolves():
    (std,) = [state for state in default_host().plugins() if state.name == "std"]
    for name, target in read_table(std).items():
        module, _, attribute = target.partition(":")
        value = getattr(importlib.import_module(module), attribute)
        thing = tf
        for part in name.split("."):
            thing = getattr(thing, part)
        assert thing is value, name


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'matmul'"):
        _ = tf.matmull
    with pytest.raises(AttributeError, match="did you mean 'relu'"):
        _ = tf.nn.rellu


def test_every_endpoint_of_the_hosts_own_ops_is_public():
    table = importlib.import_module("graphdock.ops._gen.endpoints").ENDPOINTS
    ops = importlib.import_module("graphdock.ops")
    for name, target in table.items():
        module, _, attribute = target.partition(":")
        value = getattr(importlib.import_module(module), attribute)
        thing = tf
        for part in name.split("."):
            thing = getattr(thing, part)
        assert thing is value, name
        assert "." in name or (getattr(ops, name) is value and name in dir(ops) and name in dir(tf)), name


def test_functions_of_tensors_are_the_same_in_tf_and_in_ops():
    ops = importlib.import_module("graphdock.ops")
    names = importlib.import_module("graphdock.ops.names")
    for name in names.FUNCTIONS:
        assert getattr(tf, name) is getattr(ops, name)
    for name in names.ENDPOINTS:
        assert getattr(ops, name) is not None and name in dir(ops)
