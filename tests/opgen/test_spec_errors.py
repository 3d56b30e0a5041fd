# ruff: noqa: E501 -- a table reads best with one case per line
"""Every fault of a spec is an OpSpecError that names file, line and column, and the nearest known name."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from graphdock_opgen.cli import command
from graphdock_opgen.generate import plan

#: A spec without fault; each case replaces one text of it. Lines are counted from 1.
GOOD = """\
graphdock_opdef: 1
namespace: toy
ops:
- name: Mix
  summary: A mix.
  types:
    T: {allow: [float32, float64], default: float32}
  attrs:
  - {name: N, type: int, min: 1}
  - {name: keep, type: bool, default: false}
  - {name: mode, type: string, default: up, one_of: [up, down]}
  - {name: out, type: type, default: float32}
  inputs:
  - {name: xs, dtype: T, shape: "[*S, A]", arity: {many: {count: N}}}
  - {name: w, dtype: T, shape: "[A]"}
  - {name: b, dtype: T, shape: "[A]", arity: optional}
  dims:
    let: {K: "A if keep else 1"}
    where:
    - {check: "A > 0", error: "A is {A}"}
  outputs:
  - {name: y, dtype: T, shape: "[*S, K]"}
  cost: {flops: "2 * size(xs) / A", bytes: "?"}
  gradient:
    let: {gw: "g.y * w"}
    inputs:
      xs: {fn: mix_xs}
      w: "gw if keep else g.y"
      b: none
  tests:
    samples:
    - {xs: [{shape: [2, 3]}], w: {shape: [3]}, attrs: {keep: true}}
    error_samples:
    - {xs: [{shape: [2, 3]}], w: {shape: [4]}, match: "A is"}
    tolerances: {float32: {rtol: 1.0e-5}}
    gradcheck: {inputs: [w]}
  api:
    endpoints: [{name: mix}]
    operator: __matmul__
    rename: {xs: inputs}
    order: [xs, w]
- name: Other
  summary: Another.
  inputs:
  - {name: a, dtype: int32, shape: "[*S]"}
  outputs:
  - {name: b, dtype: int32, shape: "[*S]"}
"""

#: (text replaced, its replacement, text at which the error must point, part of the message, part of the hint)
CASES = {
    "schema version": ("graphdock_opdef: 1", "graphdock_opdef: 2", "2", "schema version 2 is not known", "version 1"),
    "no header": ("graphdock_opdef: 1\nname", "name", "namespace", "begins with its schema version", "graphdock_opdef: 1"),
    "unknown key of an op": ("summary: A mix.", "sumary: A mix.", "sumary", "unknown key 'sumary'", "'summary'"),
    "unknown key of an input": ('w, dtype: T, shape: "[A]"}', 'w, dtype: T, shap: "[A]"}', "shap:", "unknown key 'shap'", "'shape'"),
    "missing key": ("  summary: Another.\n", "", "name: Other", "key 'summary' is missing", None),
    "wrong type of value": ("min: 1", "min: [1]", "[1]", "min: expected a number, got a list", None),
    "bad op name": ("name: Mix", "name: mix", "mix", "name:", None),
    "unknown attribute type": ("keep, type: bool", "keep, type: boool", "boool", "expected one of int, float", "'bool'"),
    "wrong arity": ("arity: optional", "arity: optinal", "optinal", "expected one, optional", "'optional'"),
    "unknown dtype": ("allow: [float32, float64]", "allow: [float32, float46]", "float46", "no dtype named 'float46'", "'float64'"),
    "default not allowed": ("default: float32}\n  attrs", "default: int32}\n  attrs", "int32}", "not among what T allows", None),
    "unknown type variable": ("w, dtype: T", "w, dtype: U", "U,", "'U' is neither a dtype nor a type variable", None),
    "default of a wrong type": ("bool, default: false", "bool, default: 0", "0}", "0 is not of type bool", None),
    "default not among one_of": ("default: up", "default: upp", "upp", "'upp' is not among one_of", "'up'"),
    "default dtype unknown": ("type: type, default: float32", "type: type, default: flot32", "flot32", "not of type type", "'float32'"),
    "duplicate argument": ("name: w,", "name: xs,", "xs, dtype: T, shape: \"[A]\"", "has 'xs' among its inputs already", None),
    "count of an unknown attribute": ("count: N", "count: M", "M}", "no attribute named 'M'", None),
    "count that calls": ("count: N", 'count: "max(N, 2)"', "max", "a count may call only len(T)", None),
    "bad expression": ('"A if keep else 1"', '"A if keep else"', None, "bad expression", None),
    "expression outside the language": ('"A if keep else 1"', '"A.real"', "A.real", "an attribute access has no meaning", None),
    "code in an expression": ('"A if keep else 1"', '"__import__(\'os\')"', "__import__", "no function '__import__'", "broadcast"),
    "unknown name in dims": ('"A if keep else 1"', '"A if kep else 1"', "kep", "no dim, run or attribute named 'kep'", "'keep'"),
    "unknown dim of an output": ('"[*S, K]"', '"[*S, K1]"', "K1", "no dim, run or attribute named 'K1'", "'K'"),
    "two runs of dims": ('"[*S, A]"', '"[*S, *A]"', "*A", "one run of dims only", None),
    "unknown name in a cost": ("size(xs) / A", "size(xs) / AA", "AA", "no dim, run or attribute named 'AA'", "'A'"),
    "unknown function in a cost": ("size(xs)", "sise(xs)", "sise", "no function 'sise'", "'size'"),
    "a tensor in a cost": ("size(xs) / A", "xs / A", "xs / A", "'xs' is a tensor, not a number", "size(xs)"),
    "size of a dim": ("size(xs)", "size(A)", "size(A)", "size takes the name of an input or output", "xs, w, b, y"),
    "size of an expression": ("size(xs)", "size(xs + w)", "size(xs + w)", "size takes the name of an input or output", None),
    "code in a cost": ("size(xs)", "xs.size", "xs.size", "an attribute access has no meaning", None),
    "a power in a cost": ("/ A", "** A", "2 * size(xs) ** A", "a power has no meaning", None),
    "unknown key of a cost": ('bytes: "?"', 'byte: "?"', 'byte: "?"', "unknown key 'byte'", "'bytes'"),
    "no pattern": ('"[*S, A]"', '"*S, A"', "*S, A", "a shape pattern is a list in brackets", None),
    "unknown name in a message": ("A is {A}", "A is {B}", "{B}", "no dim, run or attribute named 'B'", None),
    "gradient of an unknown input": ("      w: ", "      v: ", "v: ", "Mix has no input 'v'", None),
    "gradient entry missing": ('      w: "gw if keep else g.y"\n', "", "inputs:\n      xs: {fn", "no gradient entry for 'w'", "has one"),
    "two gradient entries": ("      b: none", '      "b, w": none', '"b, w"', "input 'w' has two gradient entries", None),
    "null gradient": ("b: none\n", "b: null\n", "null", "a gradient is a formula", "none, not null"),
    "unknown kind of gradient": ("{fn: mix_xs}", "{fun: mix_xs}", "fun", "unknown kind of gradient 'fun'", "'fn'"),
    "unknown output in a formula": ('"g.y * w"', '"g.z * w"', "g.z", "no output named 'z'", "y"),
    "unknown name in a formula": ('"g.y * w"', '"g.y * wt"', "wt", "no input, output, attribute or let named 'wt'", None),
    "unknown function in a formula": ('"g.y * w"', '"zeros_lik(w)"', "zeros_lik", "no function 'zeros_lik'", "'zeros_like'"),
    "condition on a tensor": ("gw if keep else", "gw if w else", "w else", "may read only attributes", "where"),
    "and between tensors": ('"gw if keep else g.y"', '"w and b"', "w and", "may read only attributes", "logical_and"),
    "syntax of a formula": ('"gw if keep else g.y"', '"gw +"', None, "bad expression", None),
    "unknown op": ("{fn: mix_xs}", "{op: Othr}", "Othr", "no op named 'Othr'", None),
    "op that does not match": ("{fn: mix_xs}", "{op: Other}", "Other}", "nothing of toy.Mix matches input 'a'", "grad_<output>"),
    "sample of an unknown argument": ("w: {shape: [3]}", "v: {shape: [3]}", "v: {shape: [3]}", "Mix has no input 'v'", None),
    "sample without an argument": ("w: {shape: [3]}, attrs", "attrs", "{xs: [{shape: [2, 3]}], attrs", "nothing for input 'w'", None),
    "sample of an unknown attribute": ("attrs: {keep: true}", "attrs: {kep: true}", "kep", "Mix has no attribute 'kep'", "'keep'"),
    "sample with an odd key": ("w: {shape: [4]}", "w: {shap: [4]}", "shap:", "unknown key 'shap' of a sample", "'shape'"),
    "sample that is no list": ("xs: [{shape: [2, 3]}], w: {shape: [3]}", "xs: {shape: [2]}, w: {shape: [3]}", "{shape: [2]}", "takes a list", None),
    "error sample without match": (', match: "A is"', "", "{xs: [{shape: [2, 3]}], w: {shape: [4]}", "needs match", None),
    "tolerance of an unknown dtype": ("{float32: {rtol", "{float23: {rtol", "float23", "no dtype named 'float23'", "'float32'"),
    "gradcheck of an undifferentiable input": ("gradcheck: {inputs: [w]}", "gradcheck: {inputs: [b]}", "b]", "no gradient to check", None),
    "unknown operator": ("operator: __matmul__", "operator: __matmull__", "__matmull__", "no operator method", "'__matmul__'"),
    "rename of an unknown argument": ("rename: {xs:", "rename: {x:", "x:", "Mix has no argument 'x'", None),
    "default of what is no input": ("order: [xs, w]", "default: {kep: 1}", "kep:", "Mix has no input 'kep'", None),
    "order of an unknown argument": ("order: [xs, w]", "order: [xs, ww]", "ww", "Mix has no argument 'ww'", None),
    "order with a default first": ("order: [xs, w]", "order: [keep, xs, w]", "xs, w]", "'inputs' has no default, but 'keep'", None),
    "bad endpoint": ("{name: mix}", "{name: a-b}", "a-b", "not a dotted Python name", None),
    "no gradient block": ("a, dtype: int32", "a, dtype: float32", "Other", None, None),
    "duplicate op": ("name: Other", "name: Mix", "Mix\n  summary: Another", "op toy.Mix is defined twice", None),
    "endpoint clash": (
        '  - {name: b, dtype: int32, shape: "[*S]"}\n',
        '  - {name: b, dtype: int32, shape: "[*S]"}\n  api: {endpoints: [{name: mix}]}\n',
        "mix}]}\n",
        "endpoint 'mix' is also toy.Mix's",
        None,
    ),
    "bad module:name": ("summary: Another.", "summary: Another.\n  reference: no_colon", "no_colon", "expected 'module:name'", None),
    "a bool for a number": ("min: 1", "min: true", "true", "expected a number, got a bool", None),
    "attribute called name": ("name: keep, type", "name: name, type", "name, type", "'name' is the wrapper's own last argument", None),
    "sample of an unknown type variable": ("attrs: {keep: true}", "attrs: {keep: true}, types: {U: float32}", "U:", "Mix has no type variable 'U'", None),
    "condition on a tensor and an attribute": ("gw if keep else g.y", "gw if w + keep else g.y", "w + keep", "may read only attributes", None),
    "a run where a dim is": ('{name: b, dtype: T, shape: "[A]"', '{name: b, dtype: T, shape: "[*A]"', "*A", "'A' is a number (of xs), here it is a run of dims", None),
    "a dim where a run is": ('{name: b, dtype: T, shape: "[A]"', '{name: b, dtype: T, shape: "[S]"', "S]", "'S' is a run of dims (of xs), here it is a number", None),
    "an attribute where a run is": ('"[*S, K]"', '"[*keep, K]"', "*keep", "'keep' is a condition (an attribute), here it is a run", None),
    "a run of an output that is a dim": ('"[*S, K]"', '"[*K]"', "*K", "'K' is a number (let), here it is a run of dims", None),
    "arithmetic with a run": ('"A if keep else 1"', '"A + S"', "S", "an operand is a number or a fraction, and 'S' is a run of dims", None),
    "a product of dims": ('"A if keep else 1"', '"prod(A)"', "A)", "an argument of prod is a run of dims, and 'A' is a number", None),
    "a broadcast of nothing": ('"A if keep else 1"', '"broadcast()"', "broadcast()", "broadcast takes at least one argument", None),
    "a minimum of texts": ('"A if keep else 1"', '"min(mode, A)"', "mode,", "'mode' is a text", None),
    "branches of two kinds": ('"A if keep else 1"', '"A if keep else S"', "S", "what follows else is a number or a fraction", None),
    "a text as a condition": ('"A if keep else 1"', '"A if mode else 1"', "mode else", "the condition of if is a condition or a number", None),
    "a check that checks nothing": ('check: "A > 0"', 'check: "A"', "A", "a check is a condition, and 'A' is a number", None),
    "a comparison of two kinds": ('check: "A > 0"', 'check: "A == S"', "S", "what is compared is a number or a fraction", None),
    "a dim that is a fraction": ('"[*S, K]"', '"[*S, 2.5]"', "2.5", "a dim can't be 2.5", None),
    "a division by nothing": ('"A if keep else 1"', '"A // 0"', "A // 0", "nothing can be divided by zero", None),
    "a name that a later input binds": ('"[*S, A]"', '"[*S, 2 * A]"', "A]", "'A' is not bound yet", None),
    "an index outside of a list": ('check: "A > 0"', 'check: "i > 0"', "i > 0", "no dim, run or attribute named 'i'", None),
    "a let of a name that is taken": ("let: {K:", "let: {A: \"1\", K:", "A:", "'A' is a number (of xs) already", None),
    "a cost that is a run": ("2 * size(xs) / A", "S", None, "a cost is a number or a fraction", None),
    "a stray brace": ("A is {A}", "A is A}", "}", "a brace in a message encloses one name", None),
    "a number beyond 64 bits": ('"A if keep else 1"', '"A + 9223372036854775808"', "9223372036854775808", "does not fit into 64 bits", None),
    "an expression too deep": ('"A if keep else 1"', '"' + "-" * 60 + 'A"', "---", "nested deeper than 50", None),
    "a default below min": ("{name: keep, type: bool, default: false}", "{name: keep, type: int, default: 0, min: 1}", "0, min", "0 is less than min, 1", None),
    "a default above max": ("{name: keep, type: bool, default: false}", "{name: keep, type: list(int), default: [1, 2], max: 1}", "[1, 2]", "[1, 2] is more than max, 1", None),
    "bounds of a text": ("type: string, default: up", "type: string, min: 1, default: up", "min: 1, default", "min bounds numbers and lengths of lists", None),
    "bounds that cross": ("min: 1}", "min: 3, max: 2}", "2}", "max of N, 2, is less than min, 3", None),
    "one_of of another type": ("one_of: [up, down]", "one_of: [up, 3]", "3]", "one_of of mode: 3 is not of type string", None),
    "a sample that the checks refuse": ("xs: [{shape: [2, 3]}], w: {shape: [3]}", "xs: [{shape: [2, 0]}], w: {shape: [0]}", "{xs: [{shape: [2, 0]", "the op refuses this sample: toy.Mix: A is 0", None),
    "a sample whose shapes clash": ("xs: [{shape: [2, 3]}], w: {shape: [3]}", "xs: [{shape: [2, 3]}], w: {shape: [4]}", "{xs: [{shape: [2, 3]}], w: {shape: [4]}, attrs", "the op refuses this sample: toy.Mix: dim 0 of w is 4, but A is 3", None),
    "a sample below min": ("xs: [{shape: [2, 3]}], w: {shape: [3]}", "xs: [], w: {shape: [3]}", "{xs: []", "the op refuses this sample: toy.Mix needs at least 1 tensors", None),
    "a sample beyond one_of": ("attrs: {keep: true}", "attrs: {mode: over}", "{xs: [{shape: [2, 3]}], w: {shape: [3]}, attrs", "the op refuses this sample", None),
    "a sample of a dtype that is not allowed": ("attrs: {keep: true}", "types: {T: int8}", "{xs: [{shape: [2, 3]}], w: {shape: [3]}, types", "the op refuses this sample: toy.Mix does not take int8", None),
    "an error sample of another message": ('match: "A is"', 'match: "B is"', '"B is"', "refuses this sample with another message: toy.Mix: dim 0 of w is 4", None),
    "a match that is no expression": ('match: "A is"', 'match: "A (is"', '"A (is"', "match is no regular expression: missing )", None),
    "a ragged literal": ("w: {shape: [3]}", "w: {value: [[1, 2], [3]]}", "[[1, 2], [3]]", "rows of different lengths", None),
    "a dict as a dtype": ("w: {shape: [3]}", "w: {shape: [3], dtype: {a: 1}}", "{a: 1}", "no dtype named {'a': 1}", None),
    "a text as a bound": ("w: {shape: [3]}", "w: {shape: [3], low: a}", "a}", "low: expected a number", None),
    "a text in a scalar formula": ("  inputs:\n  - {name: a,", "  scalar: \"a + 'x'\"\n  traits: {elementwise: true}\n  inputs:\n  - {name: a,", "'x'", "'x' is no number", None),
    "no op": ("ops:\n", "ops: []\nopz:\n", None, "unknown key 'opz'", None),
    "output optional": ("b, dtype: int32,", "b, dtype: int32, arity: optional,", "optional,", "an output can't be optional", None),
}  # fmt: skip


def test_the_spec_without_fault(make) -> None:
    assert plan(make("pkg", toy=GOOD)).errors == ()


@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][3] is not None])
@pytest.mark.sampled(2)
def test_fault(make, case: str) -> None:
    old, new, at, message, hint = CASES[case]
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new, 1)
    errors = plan(make("pkg", toy=text)).errors
    assert errors, "no error"
    shown = [e for e in errors if message in str(e)]
    assert shown, [str(e) for e in errors]
    error = shown[0]
    assert error.file.endswith("specs/toy.yaml")
    if at is not None:
        index = (
            text.rindex(at) if case in ("duplicate op",) else text.index(at, max(text.find(new), 0) if at in new else 0)
        )
        line = text.count("\n", 0, index) + 1
        column = index - (text.rfind("\n", 0, index) + 1) + 1
        assert (error.line, error.column) == (line, column), str(error)
    if hint is not None:
        assert hint in (error.hint or "")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_floating_op_needs_a_gradient_block_or_none(make, dtype: str) -> None:
    spec = """\
    graphdock_opdef: 1
    namespace: toy
    ops:
    - name: Half
      summary: Half.
      inputs: [{name: a, dtype: float32, shape: "[*S]"}]
      outputs: [{name: b, dtype: float32, shape: "[*S]"}]
    """
    spec = spec.replace("float32", dtype)
    (error,) = plan(make("without", toy=spec)).errors
    assert "Half has floating inputs (a) and no gradient block" in str(error)
    assert (error.line, error.column) == (4, 9)
    assert error.hint == "write 'gradient: none' where there is no derivative"
    declared = plan(make("with_none", toy=spec.rstrip() + "\n      gradient: none\n"))
    assert declared.errors == ()
    assert declared.counts.none == 1


def test_one_run_shows_the_first_fault_of_every_op(make) -> None:
    text = GOOD.replace("w, dtype: T", "w, dtype: U").replace("a, dtype: int32", "a, dtype: int23")
    errors = plan(make("pkg", toy=text)).errors
    assert [e.line for e in errors] == [15, 45]


def test_a_fault_in_one_file_keeps_the_others(make) -> None:
    result = plan(make("pkg", bad="graphdock_opdef: 1\nnamespace: toy\nops: {}\n", toy=GOOD))
    assert [str(e).splitlines()[0].rpartition("specs/")[2] for e in result.errors] == [
        "bad.yaml:3:6: ops: expected a list, got a mapping"
    ]
    assert [op.type for op in result.library.ops] == ["toy.Mix", "toy.Other"]


def test_a_file_without_ops_is_said(make) -> None:
    (error,) = plan(make("pkg", toy="graphdock_opdef: 1\nnamespace: toy\nops: []\n")).errors
    assert (error.line, error.column) == (3, 6) and "declares no op" in str(error)


@pytest.mark.parametrize("entry", ["{op: Halved}", '"halved(g.b)"', '"toy_half(g.b)"'])
def test_what_depends_on_a_faulty_op_does_not_call_it_unknown(make, entry: str) -> None:
    spec = f"""\
    graphdock_opdef: 1
    namespace: toy
    ops:
    - name: Half
      summary: Half.
      inputs: [{{name: a, dtype: float32, shape: "[*S]"}}]
      outputs: [{{name: b, dtype: float32, shape: "[*S]"}}]
      gradient: {{inputs: {{a: {entry}}}}}
    - name: Halved
      summary: Half.
      inputs: [{{name: grad_b, dtype: flot32, shape: "[*S]"}}]
      outputs: [{{name: c, dtype: float32, shape: "[*S]"}}]
      gradient: none
      api: {{endpoints: [{{name: toy_half}}]}}
    """
    first, second = plan(make("pkg", toy=spec)).errors
    assert "'flot32' is neither a dtype" in str(first) and "has a fault of its own" in str(second)


@pytest.mark.parametrize("typo", [("  outputs:", "  outputz:"), ("gradient:", "gradient: ["), ("- name:", "- nam:")])
def test_one_typo_in_a_file_whose_ops_others_use_is_one_message(make, typo: tuple[str, str]) -> None:
    used = """\
    graphdock_opdef: 1
    namespace: toy
    ops:
    - name: Halved
      summary: Half.
      inputs: [{name: a, dtype: float32, shape: "[*S]"}]
      outputs: [{name: c, dtype: float32, shape: "[*S]"}]
      gradient: none
      api: {endpoints: [{name: toy_half}]}
    """
    entries = ("{op: Halved}", '"halved(g.b)"', '"toy_half(g.b)"')
    users = "graphdock_opdef: 1\nnamespace: toy\nops:\n" + "".join(
        f"- name: Half{n}\n  summary: Half.\n"
        f'  inputs: [{{name: a, dtype: float32, shape: "[*S]"}}]\n'
        f'  outputs: [{{name: b, dtype: float32, shape: "[*S]"}}]\n'
        f"  gradient: {{inputs: {{a: {entry}}}}}\n"
        for n, entry in enumerate(entries)
    )
    package = make("pkg", toy=used.replace(*typo, 1), users=users)
    done = CliRunner().invoke(command, ["check", str(package)])
    first, *rest = done.stderr.splitlines()
    assert done.exit_code == 1 and first.startswith("error: ") and "specs/toy.yaml:" in first, done.stderr
    assert not [line for line in rest if line.startswith("error: ")] and len(rest) <= 4
    assert "and 3 formulas that use what has a fault: they are checked when it has none" in rest
