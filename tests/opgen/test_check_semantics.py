# ruff: noqa: E501 -- a table reads best with one case per line
"""What an op does must fit the rest of its spec; faults point at the line and name the nearest known word."""

from __future__ import annotations

import pytest
from graphdock_opgen.generate import plan

GOOD = """\
graphdock_opdef: 1
namespace: toy
ops:
- name: Blend
  summary: A blend.
  executes: kernel
  effects: [io]
  inputs:
  - {name: x, dtype: float32, shape: "[*S]"}
  - {name: y, dtype: float32, shape: "[*S]"}
  outputs: [{name: z, dtype: float32, shape: "[*S]"}]
  traits: {elementwise: true}
  scalar: "x * y + 1"
  identity: x
  neutral: {y: 1}
  gradient: none
- name: Push
  summary: A push.
  inputs:
  - {name: table, dtype: resource, shape: "[]", access: writes, resource: toy.Table}
  gradient: none
- name: Table
  summary: A handle.
  executes: handle
  resource: toy.Table
  attrs:
  - {name: container, type: string, default: ""}
  - {name: shared_name, type: string, default: ""}
  outputs: [{name: table, dtype: resource, shape: "[]"}]
  traits: {stateful: true}
"""

CASES = {
    "a region of what talks to the world": (
        '  scalar: "x * y + 1"',
        '  region: {outputs: {z: "x * y + 1"}}',
        "region",
        "only an op that is pure, or draws or writes variables and does nothing else, has a region",
        None,
    ),
    "an input that lies nowhere in the space": (
        '  effects: [io]\n  inputs:\n  - {name: x, dtype: float32, shape: "[*S]"}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  outputs: [{name: z, dtype: float32, shape: "[*S]"}]\n  traits: {elementwise: true}\n  scalar: "x * y + 1"',
        '  inputs:\n  - {name: x, dtype: float32, shape: "[*S]"}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  outputs: [{name: z, dtype: float32, shape: "[*S]"}]\n  traits: {pure: true}\n  region: {space: [M, K], axes: {x: "[M, K]"}, outputs: {z: "sum(x * y, K)"}}',
        "axes",
        "expected the axes of each input, of an op that names its space",
        None,
    ),
    "an axis that the space has not": (
        '  effects: [io]\n  inputs:\n  - {name: x, dtype: float32, shape: "[*S]"}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  outputs: [{name: z, dtype: float32, shape: "[*S]"}]\n  traits: {elementwise: true}\n  scalar: "x * y + 1"',
        '  inputs:\n  - {name: x, dtype: float32, shape: "[*S]"}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  outputs: [{name: z, dtype: float32, shape: "[*S]"}]\n  traits: {pure: true}\n  region: {space: [M, K], axes: {x: "[M, K]", y: "[K, L]"}, outputs: {z: "sum(x * y, K)"}}',
        "[K, L]",
        "expected a list of axes, or one for either value of a bool attribute",
        None,
    ),
    "an update that leaves out a handle": (
        '  effects: [io]\n  inputs:\n  - {name: x, dtype: float32, shape: "[*S]"}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  outputs: [{name: z, dtype: float32, shape: "[*S]"}]\n  traits: {elementwise: true}\n  scalar: "x * y + 1"',
        '  inputs:\n  - {name: x, dtype: resource, shape: "[]", access: writes}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  traits: {stateful: true}\n  region: {writes: {y: "x * y"}}',
        "writes",
        "expected a formula for each handle: x",
        None,
    ),
    "a pure op that draws": (
        '  effects: [io]\n  inputs:\n  - {name: x, dtype: float32, shape: "[*S]"}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  outputs: [{name: z, dtype: float32, shape: "[*S]"}]\n  traits: {elementwise: true}\n  scalar: "x * y + 1"',
        '  inputs:\n  - {name: x, dtype: float32, shape: "[*S]"}\n  - {name: y, dtype: float32, shape: "[*S]"}\n  outputs: [{name: z, dtype: float32, shape: "[*S]"}]\n  traits: {elementwise: true, pure: true}\n  region: {outputs: {z: "x * y + uniform()"}}',
        "uniform()",
        "a pure op draws nothing",
        None,
    ),
    "unknown verb": ("executes: kernel", "executes: kernl", "kernl", "expected one of", "'kernel'"),
    "a verb of the host's": (
        "executes: kernel",
        "executes: branch",
        "branch",
        "only the host's own ops execute as branch",
        "kernel, alias, none, handle",
    ),
    "unknown effect": ("effects: [io]", "effects: [oi]", "oi", "expected one of io", None),
    "unknown access": ("access: writes", "access: write", "access: write,", "expected one of reads", "'writes'"),
    "a handle without access": (
        ", access: writes",
        "",
        "table",
        "does not say what it does through the handle table",
        "reads, writes, uses",
    ),
    "access of a tensor": (
        'name: x, dtype: float32, shape: "[*S]"',
        'name: x, dtype: float32, shape: "[*S]", access: reads',
        "access",
        "only a handle",
        None,
    ),
    "a handle op without a kind": (
        "  resource: toy.Table\n  attrs",
        "  attrs",
        "executes: handle",
        "resource and 'executes: handle' go together",
        None,
    ),
    "a kind without the verb": ("  executes: handle\n", "", "resource: toy.Table", "go together", None),
    "a handle op without its container": (
        '  - {name: container, type: string, default: ""}\n',
        "",
        "executes: handle",
        "needs the attribute container",
        '{name: container, type: string, default: ""}',
    ),
    "a container that must be given": (
        '{name: container, type: string, default: ""}',
        "{name: container, type: string}",
        "executes: handle",
        "needs the attribute container",
        None,
    ),
    "a handle op of two handles": (
        '[{name: table, dtype: resource, shape: "[]"}]',
        '[{name: table, dtype: resource, shape: "[]"}, {name: b, dtype: resource}]',
        "executes: handle",
        "has no inputs and one output",
        None,
    ),
    "handles to variables": (
        "  resource: toy.Table\n  attrs",
        "  resource: variable\n  attrs",
        "resource: variable",
        "handles to variables are the host's own",
        "register",
    ),
    "a kind that is no name": (
        "  resource: toy.Table\n  attrs",
        "  resource: toy/Table\n  attrs",
        "toy/Table",
        "no name of a resource kind",
        None,
    ),
    "a kind of a tensor": (
        'name: x, dtype: float32, shape: "[*S]"',
        'name: x, dtype: float32, shape: "[*S]", resource: toy.Table',
        "resource",
        "only a handle",
        None,
    ),
    "a kind at an output": (
        '[{name: table, dtype: resource, shape: "[]"}]',
        "[{name: table, dtype: resource, resource: toy.Table}]",
        "resource: toy.Table",
        "stands at the op",
        None,
    ),
    "a handle that a kernel makes": (
        "  executes: handle\n  resource: toy.Table\n",
        "",
        "dtype: resource",
        "only an op that executes as handle makes handles",
        None,
    ),
    "pure with an effect": ("{elementwise: true}", "{elementwise: true, pure: true}", "pure", "is not pure", None),
    "unknown input of a formula": ("x * y + 1", "x * w + 1", "w + 1", "no input or attribute named 'w'", None),
    "unknown function of a formula": ("x * y + 1", "maxmum(x, y)", "maxmum", "no function 'maxmum'", "'maximum'"),
    "a function with too few arguments": ("x * y + 1", "maximum(x)", "maximum(x)", "maximum takes 2 arguments", None),
    "a formula that is no expression": ("x * y + 1", "[x, y]", "[x, y]", "has no meaning here", None),
    "a formula of an op that mixes elements": (
        "{elementwise: true}",
        "{commutative: true}",
        "x * y",
        "only an elementwise op",
        None,
    ),
    "unknown identity": ("identity: x", "identity: xx", "xx", "no input 'xx'", "'x'"),
    "unknown neutral input": ("neutral: {y: 1}", "neutral: {w: 1}", "w: 1", "no input 'w'", None),
    "unknown input of constants": (
        "neutral: {y: 1}",
        "neutral: {y: 1}\n  constants: {w: {'2': [Blend]}}",
        "w: {",
        "no input 'w'",
        None,
    ),
    "a constant that is no number": (
        "neutral: {y: 1}",
        "neutral: {y: 1}\n  constants: {y: {two: [Blend]}}",
        "two: [",
        "'two' is no number",
        None,
    ),
    "joint of what is no product": (
        "neutral: {y: 1}",
        "neutral: {y: 1}\n  joint: {join: Concat, cut: SplitV, add: Add}",
        "joint",
        "only a product with the attributes",
        None,
    ),
    "bodies without a verb for them": (
        "  executes: kernel\n",
        "  bodies: {f: {takes: x}}\n",
        "bodies",
        "bodies go with the verbs",
        None,
    ),
    "a host function without the verb": ("  executes: kernel\n", '  host_fn: "a:b"\n', "host_fn", "go together", None),
}


def test_the_spec_without_fault_passes(make) -> None:
    assert plan(make("pkg", toy=GOOD)).errors == ()


@pytest.mark.parametrize("name", CASES)
def test_fault(make, name: str) -> None:
    old, new, at, message, hint = CASES[name]
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    (error,) = plan(make("pkg", toy=text)).errors
    assert message in str(error)
    assert hint is None or hint in (error.hint or "")
    line = text.splitlines()[error.line - 1]
    assert at in line, (line, str(error))
