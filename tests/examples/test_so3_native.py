"""examples/plugins/so3_native: built as a wheel, installed into a fresh environment, and run there; its own tests pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from graphdock_native import platform_tag
from graphdock_native.build import library_suffix

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugins" / "so3_native"
WHEELHOUSE = ROOT / ".wheelhouse"

PROGRAM = """\
import numpy as np
import graphdock as tf
import graphdock_so3 as so3
from graphdock_native import include_directory

assert (include_directory() / "graphdock" / "kernel.h").is_file()
u, v = [np.ones((1, 1, 2)), np.ones((1, 3, 2))], [np.full((1, 1, 2), 2.0), np.zeros((1, 3, 2))]
y = so3.tensor_product([tf.constant(p) for p in u], [tf.constant(p) for p in v], L=1)
x = tf.placeholder(tf.float64, [1, 1, 2])
z = so3.tensor_product([x], [x], L=0)
with tf.Session() as session:
    print([part.tolist() for part in session.run(list(y))])
    print(session.explain(z), session.run(z, {x: np.full((1, 1, 2), 3.0)})[0].tolist())
"""


def run(*command, cwd, python=sys.executable, **variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHDOCK_", "PIP_", "PYTHON"))}
    env = {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    done = subprocess.run(
        [str(python), *map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


def build(project, out):
    out.mkdir(exist_ok=True)
    run("-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", out, project, cwd=out)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("cffi")
    folder = tmp_path_factory.mktemp("so3")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("_native", "__pycache__", "dist"))
    return build(folder / "source", folder / "wheels")


def test_its_wheel_is_of_this_platform(wheel):
    assert wheel.name == f"graphdock_so3-0.1.0-{platform_tag()}.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {f"graphdock_so3/_native/so3{library_suffix()}", "graphdock_so3/specs/so3.yaml"} <= set(names)


@pytest.mark.exhaustive
def test_its_own_tests_and_the_conformance_suite_pass(wheel, tmp_path):
    site = tmp_path / "site"
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", site, wheel, cwd=tmp_path)
    tests = ["-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    assert "skipped" not in run(*tests, EXAMPLE / "tests", cwd=tmp_path, PYTHONPATH=str(site))
    suite = [*tests, "-p", "graphdock_testing.pytest_plugin", "--graphdock-quick", "--graphdock-backend", "so3"]
    told = run(*suite, cwd=tmp_path, PYTHONPATH=str(site))
    assert " 0 failed" in told and "so3.TensorProduct" in told


@pytest.mark.slow
@pytest.mark.skipif(not list(WHEELHOUSE.glob("cffi-*.whl")), reason="run `make wheelhouse` first")
@pytest.mark.exhaustive
def test_it_installs_into_a_fresh_environment_and_runs(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = ["-m", "pip", "--python", python, "install", "-q", "--no-index", "--find-links", WHEELHOUSE]
    run(*pip, build(ROOT, tmp_path / "host"), wheel, cwd=tmp_path)
    shown = run("-c", PROGRAM, cwd=tmp_path, python=python)
    assert "[[[[2.0, 2.0]]], [[[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]]]" in shown
    assert "so3.tensor_product" in shown and "[[[9.0, 9.0]]]" in shown
    run("-m", "graphdock", "doctor", "--strict", "so3", cwd=tmp_path, python=python)


def test_the_example_is_short():
    """What a person writes: the generated headers, ops and manifest entries are not."""
    written = [*EXAMPLE.glob("*.*"), EXAMPLE / "native" / "so3.c", *(EXAMPLE / "src" / "graphdock_so3").glob("*.py")]
    assert sum(len(p.read_text().splitlines()) for p in written) < 300
