"""``graphdock new``: what it makes builds a wheel, installs, and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
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
    "flags", [(), ("--device",), ("--ops",), ("--device", "--ops")], ids=lambda f: "+".join(f) or "none"
)
def test_a_new_package_builds_installs_and_passes_its_tests(tmp_path: Path, flags: tuple[str, ...]) -> None:
    made = new("plugin", "my_chip", *flags, "--dir", str(tmp_path))
    assert made.exit_code == 0, made.output
    root, site = tmp_path / "graphdock-my-chip", tmp_path / "site"
    names = install(root, site)
    assert "graphdock_my_chip/graphdock-plugin.toml" in names
    assert ("graphdock_my_chip/_gen/opdefs.py" in names) == ("--ops" in flags)
    assert ("graphdock_my_chip/specs/my_chip.yaml" in names) == ("--ops" in flags)
    done = run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=root, site=site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout and "skipped" not in done.stdout
    suite = ["-m", "pytest", "-q", "-p", "graphdock.testing.pytest_plugin", "-p", "no:cacheprovider"]
    conforms = run(*suite, "--graphdock-backend", "my_chip", cwd=root, site=site)
    assert conforms.returncode == 0, conforms.stdout[-3000:] + conforms.stderr
    assert " 0 failed" in conforms.stdout
    lint = run(
        "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W", "--exclude=_gen", ".", cwd=root
    )
    assert lint.returncode == 0, lint.stdout


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
        (("op", "SoftClip"), 2, "no package with a folder specs/"),
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
