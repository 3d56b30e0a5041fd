"""The generated part of a manifest says what the code registers, as the host's loader reads it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.errors import NotFoundError, PluginError
from graphdock.plugin.manifest import MARKER, loads
from graphdock_opgen.cli import command
from graphdock_opgen.generate import plan, write
from graphdock_opgen.manifest import updated

UPPER = """\
schema = 1

[plugin]
name = "clipnorm"
summary = "x"  # a comment that stays
api = ">=0.2,<0.3"
"""
PLUGIN = """\
from graphdock.contracts import KernelDef, OpLibrary, hookimpl

@hookimpl
def register_ops(host):
    return [OpLibrary("{package}._gen.opdefs")]

@hookimpl
def register_kernels():
    return [
        KernelDef("clipnorm.ClipNorm", device="cpu", build=print, types={{"T": ["float32", "float64"]}}),
        KernelDef("Abs", device="cpu", build=print, name="fast_abs"),
    ]
"""


@pytest.fixture
def package(make, request: pytest.FixtureRequest) -> Path:
    name = f"manifest_{abs(hash(request.node.name))}"
    found = make(name)
    write(plan(found))
    (found / "graphdock-plugin.toml").write_text(UPPER)
    (found / "plugin.py").write_text(PLUGIN.format(package=name))
    yield found
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]


def test_the_loader_reads_what_opgen_writes(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package.parent))
    path, before, after = updated(package)
    assert before == UPPER
    assert after.startswith(UPPER.rstrip("\n")) and MARKER in after
    manifest = loads(after, path)
    assert manifest.op_names == ("clipnorm.ClipNorm",)
    assert [(k.op, k.device, k.name, dict(k.types)) for k in manifest.kernels] == [
        ("Abs", "cpu", "fast_abs", {}),
        ("clipnorm.ClipNorm", "cpu", "clip_norm", {"T": ("float32", "float64")}),
    ]
    path.write_text(after)
    assert updated(package)[2] == after


def test_the_command_writes_and_checks(package: Path) -> None:
    run = lambda *args: CliRunner().invoke(command, ["manifest", str(package), *args])  # noqa: E731
    drifted = run("--check")
    assert drifted.exit_code == 1 and '+op = "Abs"' in drifted.output
    assert run().exit_code == 0
    checked = run("--check")
    assert (checked.exit_code, checked.output.strip().endswith("up to date")) == (0, True)


def test_faults_are_named(package: Path) -> None:
    (package / "plugin.py").write_text("def register_kernels():\n    return [1]\n")
    with pytest.raises(PluginError, match=r"plugin\.register_kernels returned 1"):
        updated(package)
    with pytest.raises(PluginError, match="no_such can't be imported"):
        updated(package, f"{package.name}.no_such")
    (package / "graphdock-plugin.toml").unlink()
    with pytest.raises(NotFoundError, match=r"holds no graphdock-plugin\.toml"):
        updated(package)
