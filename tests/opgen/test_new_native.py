"""``graphdock new plugin NAME --native``: a wheel of this platform that installs and passes its own tests, and what is said
where there is no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock_native import platform_tag
from graphdock_native.build import library_suffix
from graphdock_opgen.new_files import render


def new(*args: str) -> object:
    return CliRunner().invoke(cli, ["new", *args])


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    return subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    made = new("plugin", "fast_math", "--native", "--summary", 'Kernels in C, "quick"', "--dir", str(folder))
    assert made.exit_code == 0, made.output
    return folder / "graphdock-fast-math"


def test_its_wheel_is_of_this_platform_and_passes_its_tests(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("cffi")
    built = run("-m", "hatchling", "build", "-t", "wheel", cwd=package)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (package / "dist").glob("*.whl")
    assert wheel.name == f"graphdock_fast_math-0.1.0-{platform_tag()}.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert f"graphdock_fast_math/_native/kernels{library_suffix()}" in names
    assert "graphdock_fast_math/graphdock-plugin.toml" in names
    site = tmp_path / "site"
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
    done = run(*pip, str(wheel), cwd=package)
    assert done.returncode == 0, done.stdout + done.stderr
    tests = ["-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    done = run(*tests, cwd=package, PYTHONPATH=str(site))
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout + done.stderr
    doctor = run("-m", "graphdock", "doctor", "fast_math", cwd=package, PYTHONPATH=str(site))
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    (site / "graphdock_fast_math" / "_native" / f"kernels{library_suffix()}").unlink()
    doctor = run("-m", "graphdock", "doctor", "fast_math", cwd=package, PYTHONPATH=str(site))
    assert doctor.returncode == 1 and "fast_math.relu: the native library" in doctor.stdout, doctor.stdout


def test_without_a_compiler_the_build_ends_with_one_line(package: Path, tmp_path: Path) -> None:
    built = run("-m", "hatchling", "build", "-t", "wheel", cwd=package, PATH=str(tmp_path), CC="")
    assert built.returncode == 1 and "Traceback" not in built.stdout + built.stderr
    assert "no C compiler is here (looked for cc, gcc, clang)" in built.stdout + built.stderr
    assert "apt install build-essential" in built.stdout + built.stderr


def test_what_it_makes_is_tidy(package: Path) -> None:
    ruff = ["-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W", "."]
    done = run(*ruff, cwd=package)
    assert done.returncode == 0, done.stdout


def test_the_device_in_c_of_the_scaffold_is_that_of_the_example() -> None:
    """One text, so that what conformance says of the example holds for what is made."""
    example = Path(__file__).parents[2] / "examples" / "plugins" / "slate" / "native" / "slate.c"
    made = render("native/device.c", name="slate", ops=False, pattern=False)
    assert made.strip() == example.read_text(encoding="utf-8").strip()
