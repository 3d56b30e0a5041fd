"""Conformance reads the specs that a package ships: what a sample says, and what a package that lacks them is told."""

from __future__ import annotations

import os
import sys

import pytest
from graphdock.contracts import ArgDef, AttrDef, OpDef, OpLibrary, TypeVarDef
from graphdock.errors import InvalidArgumentError, NotFoundError, OpSpecError, UnknownOpError
from graphdock_opgen import spec_cases as cases_module
from graphdock_opgen.reader import read
from graphdock_opgen.spec_cases import spec_cases

SPEC = """\
graphdock_opdef: 1
namespace: lab
ops:
- name: Warp
  summary: Warps.
  tests:
    samples:
    - {x: {value: [1.0, .inf]}, i: [{shape: [2]}, {shape: []}], attrs: {k: [1, 2]}, types: {T: [float32]}, note: odd}
    - {x: {shape: [3], low: 1e-3}, i: []}
    error_samples: [{x: {shape: [0]}, i: [], match: empty}]
    tolerances: {float32: {rtol: 1e-5}}
    gradcheck: GRADCHECK
"""
WARP = OpDef(
    "lab.Warp",
    inputs=(ArgDef("x", "T"), ArgDef("i", "index", arity="many"), ArgDef("f", "float32"), ArgDef("v", "dtype")),
    types=(TypeVarDef("T", allow=("float32", "float64")), TypeVarDef("index", allow=("int32",))),
    attrs=(AttrDef("dtype", "type"),),
    gradient_kinds={"x": "formula", "i": "none", "f": "fn", "v": "fn"},
    reference="lab:oracle",
)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Writes ``lab.yaml`` of a package, and gives its case."""
    (tmp_path / "graphdock_readlab" / "specs").mkdir(parents=True)
    (tmp_path / "graphdock_readlab" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "graphdock_readlab" / "specs" / "lab.yaml"

    def write(text=SPEC, gradcheck="true", opdef=lambda op: {"lab.Warp": WARP}[op]):
        path.write_text(text.replace("GRADCHECK", gradcheck))
        return spec_cases("graphdock_readlab", opdef)

    yield write
    sys.modules.pop("graphdock_readlab", None)


def test_samples_are_tuples_numbers_and_the_inputs_that_they_give(lab):
    (name, data), *others = lab().items()
    assert (name, others) == ("lab.Warp", [])
    first, second = data["samples"]
    assert first == {
        "inputs": {"x": {"value": (1.0, float("inf"))}, "i": ({"shape": (2,)}, {"shape": ()})},
        "attrs": {"k": (1, 2)},
        "types": {"T": ("float32",)},
        "note": "odd",
    }
    assert second["inputs"] == {"x": {"shape": (3,), "low": 0.001}, "i": ()} and second["attrs"] == {}
    assert data["errors"] == (
        {
            "inputs": {"x": {"shape": (0,)}, "i": ()},
            "attrs": {},
            "types": {},
            "note": "",
            "match": "empty",
            "error": "",
        },
    )
    assert data["tolerances"] == {"float32": {"rtol": 1e-5, "atol": 0.0}}
    assert data["types"] == {"T": ("float32", "float64"), "index": ("int32",)}
    assert data["args"] == {"x": "T", "i": "index", "f": "float32", "v": "dtype"} and data["reference"] == "lab:oracle"


@pytest.mark.parametrize(
    ("said", "inputs", "options"),
    [
        ("true", ("x", "v"), {}),
        ("false", (), {}),
        ("{inputs: [x]}", ("x",), {}),
        ("{eps: 1e-3, atol: 1}", ("x", "v"), {"eps": 0.001, "atol": 1}),
    ],
)
def test_gradients_are_checked_where_there_are_some_and_the_input_may_be_wide(lab, said, inputs, options):
    data = lab(gradcheck=said)["lab.Warp"]
    assert (data["gradcheck"], data["gradcheck_options"]) == (inputs, options)


def test_a_file_that_changes_is_read_again(lab, tmp_path):
    assert len(lab()["lab.Warp"]["samples"]) == 2
    path = tmp_path / "graphdock_readlab" / "specs" / "lab.yaml"
    before = path.stat().st_mtime_ns
    path.write_text(path.read_text().replace("- {x: {shape: [3], low: 1e-3}, i: []}", ""))
    os.utime(path, ns=(before + 1, before + 1))
    assert len(spec_cases("graphdock_readlab", lambda op: WARP)["lab.Warp"]["samples"]) == 1


def test_a_wheel_without_its_specs_is_told_so(tmp_path, lab):
    with pytest.raises(NotFoundError, match=r"graphdock_readlab should lie in .*specs, and there is no \*\.yaml"):
        spec_cases("graphdock_readlab", lambda op: WARP)


def test_an_op_that_the_library_does_not_bring_and_a_file_that_is_no_yaml(lab):
    def unknown(op):
        raise UnknownOpError(f"no op named {op!r}")

    with pytest.raises(OpSpecError, match=r"lab\.yaml:4:9: lab\.Warp is not among the ops of graphdock_readlab"):
        lab(opdef=unknown)
    with pytest.raises(OpSpecError, match=r"lab\.yaml:2:"):
        lab("graphdock_opdef: 1\n}")


def test_the_cases_of_older_packages_are_refused_with_the_new_name():
    with pytest.raises(InvalidArgumentError, match="specs='graphdock_chip'"):
        OpLibrary("graphdock_chip._gen.opdefs", cases="graphdock_chip._gen.cases")


def test_a_text_is_read_once_and_again_where_what_was_kept_is_damaged(lab, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path / "cache"))
    reads = []

    def counting(path):
        reads.append(path)
        return read(path)

    monkeypatch.setattr(cases_module, "read", counting)
    cases_module._entries.cache_clear()
    want = lab()
    cases_module._entries.cache_clear()
    assert lab() == want and len(reads) == 1
    (kept,) = (tmp_path / "cache" / "specs").iterdir()
    kept.write_bytes(kept.read_bytes()[:-3])
    cases_module._entries.cache_clear()
    assert lab() == want and len(reads) == 2
    lab(SPEC.replace("odd", "even"))
    assert len(reads) == 3 and len(list(kept.parent.iterdir())) == 2
