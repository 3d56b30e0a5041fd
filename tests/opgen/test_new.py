"""``graphdock new``: what it makes builds a wheel, installs, and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.cli import cli


def new(*args: str) -> object:
    return CliRunner().invoke(cli, ["new", *args])


def run(*command: str, cwd: Path, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if site is not None:
        env["PYTHONPATH"] = str(site)
    return subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def install(root: Path, site: Path) -> list[str]:
    """Build a wheel offline, install it into ``site``, and return the names it holds."""
    done = run("-m", "hatchling", "build", "-t", "wheel", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (root / "dist").glob("*.whl")
    pip = [
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
    ]
    done = run(*pip, str(wheel), cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), marks=pytest.mark.exhaustive),
        pytest.param(("--device",), marks=pytest.mark.exhaustive),
        pytest.param(("--ops",), marks=pytest.mark.exhaustive),
        ("--device", "--ops"),
    ],
    ids=lambda f: "+".join(f) or "none",
)
def test_a_new_package_builds_installs_and_passes_its_tests(tmp_path: Path, flags: tuple[str, ...]) -> None:
    made = new("plugin", "my_chip", *flags, "--dir", str(tmp_path))
    assert made.exit_code == 0, made.output
    root, site = tmp_path / "graphdock-my-chip", tmp_path / "site"
    names = install(root, site)
    assert "graphdock_my_chip/graphdock-plugin.toml" in names
    assert ("graphdock_my_chip/_gen/opdefs.py" in names) == ("--ops" in flags)
    assert ("graphdock_my_chip/specs/my_chip.yaml" in names) == ("--ops" in flags)
    assert ("graphdock_my_chip/_gen/public.pyi" in names) == ("--ops" in flags)
    assert any(n.startswith("graphdock_my_chip/specs/") for n in names) == ("--ops" in flags), "conformance reads them"
    assert "graphdock_my_chip/py.typed" in names
    done = run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=root, site=site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout and "skipped" not in done.stdout
    suite = ["-m", "pytest", "-q", "-p", "graphdock_testing.pytest_plugin", "-p", "no:cacheprovider"]
    conforms = run(*suite, "--graphdock-quick", "--graphdock-backend", "my_chip", cwd=root, site=site)
    assert conforms.returncode == 0, conforms.stdout[-3000:] + conforms.stderr
    assert " 0 failed" in conforms.stdout
    lint = run(
        "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W", "--exclude=_gen", ".", cwd=root
    )
    assert lint.returncode == 0, lint.stdout


FIRST_OP = """\
import graphdock as tf
import graphdock_bench as b
import graphdock_bench.plugin

tf.default_host().register("bench", graphdock_bench.plugin)
y = b.soft_clip(b.halve(tf.constant([2.0]), factor=0.5), factor=3.0)
print(tf.Session().run(y))
"""


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--device",)], ids=["kernels", "device"])
@pytest.mark.exhaustive
def test_the_first_op_of_a_package_that_had_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    assert new("plugin", "bench", *flags, "--dir", str(tmp_path)).exit_code == 0
    root = tmp_path / "graphdock-bench"
    source = root / "src" / "graphdock_bench"
    before = {p: p.read_text() for p in source.rglob("*.py")}
    monkeypatch.chdir(root)
    for name in ("SoftClip", "Halve"):
        added = new("op", name)
        assert added.exit_code == 0, added.output
    for path, text in before.items():
        assert path.read_text().startswith(text), "what was there stays"
    assert sum(p.read_text().count("def register_ops") for p in source.rglob("*.py")) == 1
    (root / "program.py").write_text(FIRST_OP)
    site = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
    done = run("program.py", cwd=root, site=site)
    assert done.returncode == 0 and done.stdout == "[3.]\n", done.stderr
    checked = run("-m", "graphdock_opgen", "manifest", "--check", str(source), cwd=root, site=site)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_package_without_a_name_gets_no_op(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "__init__.py").write_text("")
    done = new("op", "SoftClip", "--package", str(tmp_path / "lab"))
    assert done.exit_code == 2 and "holds neither specs/*.yaml nor graphdock-plugin.toml" in done.output
    monkeypatch.chdir(tmp_path)
    done = new("op", "SoftClip")
    assert done.exit_code == 2 and "no package with specs/ or graphdock-plugin.toml" in done.output


def test_new_op_appends_and_what_was_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new("plugin", "lab", "--ops", "--dir", str(tmp_path)).exit_code == 0
    root = tmp_path / "graphdock-lab"
    source = root / "src" / "graphdock_lab"
    files = [source / "specs" / "lab.yaml", source / "kernels.py", source / "reference.py"]
    before = {f: f.read_text() for f in files}
    monkeypatch.chdir(root)
    added = new("op", "SoftClip")
    assert added.exit_code == 0, added.output
    for file, text in before.items():
        assert file.read_text().startswith(text) and len(file.read_text()) > len(text)
    site = tmp_path / "site"
    install(root, site)
    code = (
        "import graphdock as tf, graphdock_lab as lab\n"
        "x = tf.constant([1.0, 2.0])\n"
        "y = lab.soft_clip(x, factor=4.0)\n"
        "with tf.Session() as s: print(s.run([y, tf.gradients(y, [x])[0]]))"
    )
    done = run("-c", code, cwd=tmp_path, site=site)
    assert "4., 8." in done.stdout and "4., 4." in done.stdout, done.stdout + done.stderr
    again = new("op", "SoftClip")
    assert again.exit_code == 1 and "declares the op 'lab.SoftClip' already" in again.output


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("plugin", "My-Chip"), 2, "'My-Chip' is no plugin name"),
        (("op", "soft_clip"), 2, "'soft_clip' is no op name"),
        (("op", "SoftClip"), 2, "no package with specs/ or graphdock-plugin.toml"),
    ],
)
def test_wrong_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = new(*args)
    assert (result.exit_code, message in result.output) == (code, True), result.output


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "graphdock-lab").mkdir()
    result = new("plugin", "lab", "--dir", str(tmp_path))
    assert result.exit_code == 1 and "exists" in result.output
    assert list((tmp_path / "graphdock-lab").iterdir()) == []


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
@pytest.mark.exhaustive  # so does the page on them
def test_an_op_with_a_kernel_in_triton_passes_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new("plugin", "lab", "--ops", "--dir", str(tmp_path)).exit_code == 0
    root = tmp_path / "graphdock-lab"
    monkeypatch.chdir(root)
    added = new("op", "SoftClip", "--triton")
    assert added.exit_code == 0 and "add graphdock-triton to the dependencies" in added.output, added.output
    again = new("op", "SoftClip", "--triton")
    assert again.exit_code == 1 and "declares the op 'lab.SoftClip' already" in again.output
    site = tmp_path / "site"
    names = install(root, site)
    assert "graphdock_lab/soft_clip_triton.py" in names
    done = run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=root, site=site)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
    lint = run(
        "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W", "--exclude=_gen", ".", cwd=root
    )
    assert lint.returncode == 0, lint.stdout


def test_a_kernel_in_triton_is_for_ops_of_a_name(tmp_path: Path) -> None:
    done = new("op", "--from", "module:function", "--triton")
    assert done.exit_code == 2 and "--triton goes with a NAME" in done.output
