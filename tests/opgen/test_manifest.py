"""The generated part of a manifest says what the code registers, as the host's loader reads it."""

from __future__ import annotations

import shutil
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
api = ">=0.3,<0.4"
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
    assert [(k.op, k.device, k.short_name, dict(k.types)) for k in manifest.kernels] == [
        ("Abs", "cpu", "fast_abs", {}),
        ("clipnorm.ClipNorm", "cpu", "clip_norm", {"T": ("float32", "float64")}),
    ]
    path.write_text(after)
    assert updated(package)[2] == after


@pytest.mark.parametrize(
    "stated", ['["register_kernels"]', '["register_kernels",]', "[]", '[\n  "register_ops", # ours\n]']
)
def test_a_hook_that_came_later_is_among_those_stated(
    package: Path, monkeypatch: pytest.MonkeyPatch, stated: str
) -> None:
    monkeypatch.syspath_prepend(str(package.parent))
    (package / "graphdock-plugin.toml").write_text(f"{UPPER}hooks = {stated}\n")
    path, _, after = updated(package)
    assert set(loads(after, path).hooks) == {"register_ops", "register_kernels"}
    path.write_text(after)
    assert updated(package)[2] == after


def test_the_command_writes_and_checks(package: Path) -> None:
    run = lambda *args: CliRunner().invoke(command, ["manifest", str(package), *args])  # noqa: E731
    drifted = run("--check")
    assert drifted.exit_code == 1 and '+  {op = "Abs", device = "cpu", name = "fast_abs"},' in drifted.output
    assert run().exit_code == 0
    checked = run("--check")
    assert (checked.exit_code, checked.output.strip().endswith("up to date")) == (0, True)


@pytest.mark.parametrize("inside", [".", "..", "src"])
def test_in_a_package_no_argument_is_needed(package: Path, monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    """Below ./src, in a folder here, or here itself."""
    if inside == "src":
        (package.parent / "work" / "src").mkdir(parents=True)
        (package.parent / "work" / "src" / package.name).symlink_to(package)
        monkeypatch.chdir(package.parent / "work")
    else:
        monkeypatch.chdir(package / inside)
    monkeypatch.syspath_prepend(str(package.parent))
    for words in (["manifest"], ["manifest", "--check"], ["generate", "--counts"]):
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0, (words, done.output)
    assert MARKER in (package / "graphdock-plugin.toml").read_text()


def test_without_argument_there_must_be_one_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["manifest"])
    assert done.exit_code == 2
    assert "no packages below ./src or here hold graphdock-plugin.toml" in done.output
    for name in ("a", "b"):
        (tmp_path / name / "specs").mkdir(parents=True)
    done = CliRunner().invoke(command, ["check"])
    assert done.exit_code == 2
    assert "2 packages below ./src or here hold specs: a, b" in " ".join(done.output.split())


def test_what_was_not_generated_yet_is_named(package: Path) -> None:
    shutil.rmtree(package / "_gen")
    with pytest.raises(NotFoundError, match=r"register_ops names \S+\._gen\.opdefs, which is not there") as caught:
        updated(package)
    assert "graphdock opgen generate" in caught.value.hint


def test_faults_are_named(package: Path) -> None:
    (package / "plugin.py").write_text("def register_kernels():\n    return [1]\n")
    with pytest.raises(PluginError, match=r"plugin\.register_kernels returned 1"):
        updated(package)
    with pytest.raises(PluginError, match="no_such can't be imported"):
        updated(package, f"{package.name}.no_such")
    (package / "graphdock-plugin.toml").unlink()
    with pytest.raises(NotFoundError, match=r"holds no graphdock-plugin\.toml"):
        updated(package)


def test_what_a_hook_raises_is_told_without_a_traceback(package: Path) -> None:
    (package / "plugin.py").write_text("def register_kernels():\n    import no_such_lab.work\n")
    with pytest.raises(PluginError, match=r"register_kernels raised ModuleNotFoundError: No module") as caught:
        updated(package)
    assert caught.value.hint == "it needs no_such_lab: pip install no-such-lab"


def edited(package: Path, file: str, old: str, new: str) -> None:
    path = package / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("specs/clipnorm.yaml", "Largest norm", "The largest norm", "specs/clipnorm.yaml has changed since _gen was made"),
        ("plugin.py", "@hookimpl\ndef register_ops", "def _unused", "does not bring clipnorm.ClipNorm, which specs/ declares"),
        ("plugin.py", 'KernelDef("Abs"', 'KernelDef("Abbs"', "fast_abs is for Abbs, which nobody declares; did you mean 'Abs'?"),
        ("plugin.py", 'KernelDef("clipnorm.ClipNorm"', 'KernelDef("clipnorm.Old"', "old is for clipnorm.Old, which nobody"),
        ("plugin.py", 'name="fast_abs"),', 'name="fast_abs"), KernelDef("Abs", "cpu", print),', "abs and fast_abs tie"),
    ],
)  # fmt: skip
def test_a_manifest_is_not_written_of_parts_that_do_not_fit(
    package: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, message: str
) -> None:
    monkeypatch.syspath_prepend(str(package.parent))
    edited(package, file, old, new)
    done = CliRunner().invoke(command, ["manifest", str(package)])
    assert done.exit_code == 1 and message in done.output
    assert (package / "graphdock-plugin.toml").read_text() == UPPER


@pytest.mark.parametrize(
    ("there", "instead", "words"),
    [
        ('types={"T"', 'types={"TT"', ("'TT', and clipnorm.ClipNorm has no such type variable", "did you mean 'T'?")),
        ('name="fast_abs"', 'name="fast_abs", attrs={"mode": [1]}', ("'mode', and Abs has no such attribute",)),
    ],
)
def test_a_manifest_of_names_that_an_op_does_not_have_is_refused(
    package: Path, monkeypatch: pytest.MonkeyPatch, there: str, instead: str, words: tuple[str, ...]
) -> None:
    monkeypatch.syspath_prepend(str(package.parent))
    source = package / "plugin.py"
    text = source.read_text()
    assert there in text
    source.write_text(text.replace(there, instead))
    with pytest.raises(PluginError) as caught:
        updated(package)
    assert all(word in str(caught.value) for word in words)
