"""Parts of a plugin that do not fit one another, each said before a session comes upon it."""

from __future__ import annotations

import types

import numpy as np
import pytest
from graphdock.contracts import KernelDef
from graphdock.errors import KernelTieError, PluginError
from graphdock.plugin.consistency import check_drift
from graphdock.plugin.host import Host
from graphdock.plugin.lint import (
    absent_ops,
    ambiguous_kernels,
    digest,
    parse_generated,
    spec_drift,
    unknown_arguments,
    unknown_devices,
    unknown_ops,
)
from graphdock_commands.checks import check_parts

MADE = """\
_lab_ops: _Rows = {"lab.A": lambda op: op(), "lab.B": lambda op: op()}

OPERATORS: dict[str, str] = {"__add__": "lab:add"}

SPECS: dict[str, str] = SOURCES
"""


def kernel(name, op="Relu", device="cpu", **facts):
    return KernelDef(op, device, lambda ctx: np.copy, name=name, **facts)


# -- kernels


@pytest.mark.parametrize(
    ("first", "second", "tie"),
    [
        ({}, {}, True),
        ({}, {"priority": 1}, False),
        ({}, {"label": "slow"}, False),
        ({}, {"device": "gpu"}, False),
        ({}, {"op": "Abs"}, False),
        ({"types": {"T": ("float32",)}}, {"types": {"T": ("float64",)}}, False),
        ({"types": {"T": ("float32", "float64")}}, {"types": {"T": ("float64",)}}, True),
        ({"types": {"T": ("float32",)}}, {}, True),
        ({"types": {"T": ("float32",)}}, {"types": {"U": ("int32",)}}, True),
        ({"attrs": {"mode": ("a",)}}, {"attrs": {"mode": ("b",)}}, False),
        ({"attrs": {"mode": ("a", "b")}}, {"attrs": {"mode": ("b",)}}, True),
        ({"check": lambda node: None}, {}, True),
        ({"check": lambda node: None}, {"check": lambda node: "no"}, False),
    ],
)
def test_a_tie_is_a_pair_between_which_nothing_decides(first, second, tie):
    found = list(ambiguous_kernels([kernel("one", **first), kernel("two", **second)]))
    assert len(found) == tie
    for text in found:
        assert text.startswith("kernels one and two tie for Relu on cpu") and "a higher priority, or a label" in text


def test_a_tie_names_types_for_which_it_is_one():
    (text,) = ambiguous_kernels([kernel("one", types={"T": ("int8", "int16")}), kernel("two", types={"T": ("int16",)})])
    assert "(such as T = int16)" in text


def test_three_kernels_tie_pair_by_pair():
    assert len(list(ambiguous_kernels([kernel(n) for n in "abc"]))) == 3


def test_a_kernel_for_an_op_that_nobody_declares():
    kernels = [kernel("a", "Relu"), kernel("b", "Rellu"), kernel("c", "lab.Old"), kernel("d", "geo.Other")]
    assert list(unknown_ops(kernels, ["Relu", "lab.New"], ["lab"])) == [
        "kernel b is for Rellu, which nobody declares; did you mean 'Relu'?",
        "kernel c is for lab.Old, which nobody declares",
    ]


def test_an_op_of_a_namespace_that_another_package_has_is_nobodys_too():
    kernels = [kernel("a", "demo.Halv"), kernel("b", "demo.Third"), kernel("c", "dem.Halve"), kernel("d", "geo.Other")]
    found = list(unknown_ops(kernels, ["Relu", "demo.Halve"], ["mine"]))
    assert [text.partition(",")[0] for text in found] == [
        "kernel a is for demo.Halv",
        "kernel b is for demo.Third",
        "kernel c is for dem.Halve",
    ]
    assert "did you mean 'demo.Halve'?" in found[0]
    assert list(absent_ops(kernels, ["Relu", "demo.Halve"], ["cpu"])) == [
        "it has kernels for geo.Other, which no installed package declares"
    ]


def test_a_kernel_for_a_device_that_nobody_has():
    kernels = [kernel("a", device="cpuu"), kernel("b", device="host"), kernel("c", device="cuda"), kernel("d")]
    assert list(unknown_devices(kernels, ["cpu"])) == [
        "kernel a of Relu is for the device cpuu, which nobody has; did you mean 'cpu'?"
    ]
    compilers = [types.SimpleNamespace(name="region", device_type=d) for d in ("cpuu", "cpu", "cuda")]
    assert list(unknown_devices([], ["cpu"], compilers)) == [
        "region compiler region is for the device cpuu, which nobody has; did you mean 'cpu'?"
    ]
    assert list(absent_ops(kernels, ["Relu"], ["cpu"])) == [
        "it has kernels for the device cuda, which no installed package has"
    ]


def test_a_kernel_that_names_what_its_op_does_not_have():
    opdef = Host().ops.get("Relu")
    assert list(unknown_arguments([kernel("a", types={"TT": ["int8"]}), kernel("b", "Nope")], {"Relu": opdef}.get)) == [
        "types of kernel a names 'TT', and Relu has no such type variable; did you mean 'T'?"
    ]


# -- specs


@pytest.fixture
def package(tmp_path):
    (tmp_path / "specs").mkdir()
    (tmp_path / "_gen").mkdir()
    (tmp_path / "specs" / "lab.yaml").write_text("ops: one\n")
    made = MADE.replace("SOURCES", repr({"lab.yaml": digest("ops: one\n")}))
    (tmp_path / "_gen" / "opdefs.py").write_text(made)
    return tmp_path


def test_a_package_whose_specs_were_generated_and_registered(package):
    assert list(spec_drift(package, ["lab.A", "lab.B"])) == []
    assert parse_generated((package / "_gen" / "opdefs.py").read_text())[0] == ["lab.A", "lab.B"]


def test_ops_that_no_hook_registers(package):
    assert list(spec_drift(package, [])) == ["register_ops does not bring lab.A, lab.B, which specs/ declares"]
    assert list(spec_drift(package, ["lab.B"])) == ["register_ops does not bring lab.A, which specs/ declares"]


def test_a_spec_that_changed_after_it_was_generated(package):
    (package / "specs" / "lab.yaml").write_text("ops: two\n")
    assert list(spec_drift(package, ["lab.A", "lab.B"])) == [
        "specs/lab.yaml has changed since _gen was made: run `graphdock opgen generate`"
    ]


@pytest.mark.parametrize("change", ["another", "gone"])
def test_a_spec_that_came_or_went(package, change):
    specs = package / "specs"
    if change == "another":
        (specs / "more.yaml").write_text("x")
    else:
        (specs / "lab.yaml").rename(specs / "more.yaml")
    (text,) = spec_drift(package, ["lab.A", "lab.B"])
    assert "specs/more.yaml has changed since _gen was made" in text


def test_specs_that_were_never_generated(package):
    (package / "_gen" / "opdefs.py").unlink()
    assert list(spec_drift(package, [])) == ["nothing was made of specs/lab.yaml: run `graphdock opgen generate`"]


def test_a_package_that_ships_no_specs_is_believed(package):
    (package / "specs" / "lab.yaml").unlink()
    assert list(spec_drift(package, ["lab.A", "lab.B"])) == []


def test_generated_files_that_are_broken(package):
    (package / "_gen" / "opdefs.py").write_text("<<<<<<< HEAD\n")
    with pytest.raises(PluginError, match="_gen/opdefs.py is not Python"):
        list(spec_drift(package, []))


# -- together

TIED = """\
import numpy as np
from graphdock.contracts import KernelDef, hookimpl

@hookimpl
def register_kernels():
    make = lambda ctx: np.copy
    return [KernelDef("Relu", "cpu", make, name="one"), KernelDef("Relu", "cpu", make, name="two")]
"""


def test_what_doctor_finds_a_session_would_come_upon(site):
    import graphdock as tf

    site.plugin("tied", TIED)
    host = Host()
    host.backend("tied")
    (state,) = [s for s in host.plugins() if s.name == "tied"]
    check_parts(host, state)
    check_drift(host, state)
    assert (state.stage, state.entry().is_fault) == ("inconsistent", True)
    assert state.cause.startswith("kernels one and two tie for Relu on cpu")
    with tf.Graph(host).as_default() as graph, pytest.raises(KernelTieError, match=r"tied\.one .* and tied\.two"):
        tf.Session(graph=graph, config=tf.SessionConfig(backends=("tied", "cpu"))).run(tf.nn.relu(tf.constant([1.0])))


def test_graphdocks_own_plugins_are_consistent(builder):
    host = Host(allow=())
    for name in sorted(builder.shipped()):
        host.backend(name)
    for state in host.plugins():
        if state.found.is_own:
            check_parts(host, state)
            assert state.stage == "registered", state.cause


def test_a_library_that_is_older_than_its_sources_is_a_fault(site):
    digest_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    files = {
        "_native/fast.so": "",
        "_native/fast.so.sources": f"{digest_of_nothing}  ../fast.c\n{digest_of_nothing}  ../gone.h\n",
        "fast.c": "",
    }
    package = site.plugin("fast", files=files)

    def stage():
        host = Host()
        host.backend("fast")
        check_parts(host, host.state("fast"))
        return host.state("fast").stage, host.state("fast").cause

    assert stage() == ("registered", None)
    (site.folder / package / "fast.c").write_text("int edited;")
    assert stage()[0] == "inconsistent" and "fast.c has changed since _native/fast.so was compiled" in stage()[1]
