"""``graphdock new op --from``: the package that comes of Python functions says and computes what they did."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.plugin.host import Host
from graphdock_opgen.generate import drift, plan

OPS = ("cube", "wave", "pairs", "total", "tick", "halve")

COMPARE = """\
import json, inspect
from dataclasses import replace
import graphdock as tf, graphdock_geo, numpy as np
from graphdock.opdef.attrs import normal_attr
from graphdock.plugin.host import Host, default_host
from graphdock_opgen.spec_docs import documented_op

with tf.Graph(Host(block=["geo"])).as_default():
    import notebook_ops
host = default_host()
out = {}
for name in OPS:
    made = getattr(notebook_ops, name)
    a, b = made.op_def, documented_op(host.ops, made.type)
    for field in ("name", "version", "inputs", "outputs", "types", "effects", "traits", "summary", "where", "let"):
        left, right = getattr(a, field), getattr(b, field)
        if field == "outputs" and a.shape_fn is not None:
            assert b.shape_fn is not None
        assert left == right, (name, field, left, right)
    assert [replace(x, default=str(x.default)) for x in a.attrs] == [replace(x, default=str(x.default)) for x in b.attrs]
    assert " ".join(a.doc.split()) == " ".join(b.doc.split())
    own = list(made.signature.python.parameters)
    assert list(inspect.signature(getattr(graphdock_geo, name)).parameters) == [*own, "name"], name

x = tf.placeholder(tf.float64, [3])
n = tf.placeholder(tf.int32, [3])
y = graphdock_geo.wave(x, n, phase=0.25)
z = graphdock_geo.pairs(2, x)
c = graphdock_geo.cube(2.0, x, unit="MILE")
with tf.Session() as sess:
    feed = {x: [0.1, 0.2, 0.3], n: [1, 2, 3]}
    got = sess.run([y, z.y0, z.y1, c, *tf.gradients([y, c], [x])], feed)
array = np.array(feed[x])
want = [notebook_ops.wave.function(array, np.array(feed[n]), 0.25), *notebook_ops.pairs.function(2, array),
        notebook_ops.cube.function(2.0, array, notebook_ops.Unit.MILE),
        0.3 * np.cos(array * 0.3 + 0.25 + feed[n]) + 6 * 1.609 * array**2]
for a, b in zip(got, want, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-12)
assert graphdock_geo.halve(tf.placeholder(tf.float32, [None, 2])).shape.as_list() == [None, 2]
assert {*OPS, "scale"} == set(dir(graphdock_geo)), dir(graphdock_geo)
assert graphdock_geo.pairs(4, tf.placeholder(tf.float32, [None])).y0.shape.as_list() == [4, None]
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A new package, and the working directory beside a copy of notebook_ops.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("graphdock.plugin.host._default", Host())
    shutil.copy(Path(__file__).parent / "notebook_ops.py", tmp_path)
    new("plugin", "geo", "--ops")
    yield tmp_path / "graphdock-geo"
    sys.modules.pop("notebook_ops", None)


def new(*args):
    with tf.Graph().as_default():
        return CliRunner().invoke(cli, ["new", *args])


def op(source, status=0):
    done = new("op", "--from", source, "--package", "graphdock-geo/src/graphdock_geo")
    assert done.exit_code == status, done.output
    return done.output


def child(*command, cwd, path=()):
    folders = [*map(str, path), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.sampled(8)
def test_a_package_of_functions_says_and_computes_what_they_did(package):
    for name in OPS:
        said = op(f"notebook_ops:{name}")
        assert f"geo.{name.capitalize()}: its entry is in geo.yaml, its functions in {name}_function.py" in said
    source = package / "src" / "graphdock_geo"
    assert "NOBODY_ASKS" not in (source / "cube_function.py").read_text()
    site = package.parent / "site"
    child(
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        str(site),
        ".",
        cwd=package,
    )
    child("-c", f"OPS = {json.dumps(OPS)}\n" + COMPARE, cwd=package.parent, path=[site, package.parent])
    plugins = ["-p", "graphdock_testing.pytest_plugin", "-p", "no:cacheprovider"]
    conforms = ["-m", "pytest", "-q", *plugins, "--graphdock-quick", "--graphdock-backend", "geo"]
    child(*conforms, cwd=package, path=[site])
    child("-m", "ruff", "check", "--isolated", "--line-length=120", "--select=F,W", "--exclude=_gen", ".", cwd=package)


@pytest.mark.exhaustive
def test_the_ops_own_namespace_gets_a_file_of_its_own(package, tmp_path):
    script = tmp_path / "other.py"
    script.write_text((tmp_path / "notebook_ops.py").read_text().replace("geo::", "sea::"))
    op("other:cube")
    text = (package / "src" / "graphdock_geo" / "specs" / "sea.yaml").read_text()
    assert text.startswith("graphdock_opdef: 1\nnamespace: sea\nops:\n- name: Cube\n")
    sys.modules.pop("other")


@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("notebook_ops:plain", 1, "notebook_ops:plain is no op"),
        ("notebook_ops:cubes", 2, "has no 'cubes'"),
        ("nowhere:cube", 2, "no module 'nowhere'"),
        ("notebook_ops:inside", 1, "stands inside of another function"),
        ("notebook_ops:nameless", 1, "<lambda> stands inside of another function or statement"),
    ],
)
@pytest.mark.sampled(4)
def test_what_cannot_be_taken_is_said_and_nothing_is_written(package, source, status, message):
    before = {p: p.read_bytes() for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert message in op(source, status)
    assert before == {p: p.read_bytes() for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


@pytest.mark.exhaustive
def test_a_kernel_that_is_left_out_is_named(package):
    said = op("notebook_ops:halve")
    assert "left out: its kernel halve_quickly for cpu; write it into kernels.py" in said
    assert "left out: its kernel far for mychip" in said
    assert "left out" not in op("notebook_ops:wave")


SCRIPT = """\
import graphdock as tf
import numpy as np
from numpy.typing import NDArray
{above}

def scaled(x):
    {inside}
    return x * helpers.factor

@tf.custom_op("geo::local", shapes={{"x": "[*S]", "y": "[*S]"}}, differentiable=False)
def local(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return scaled(x)
"""


@pytest.mark.parametrize(
    ("above", "inside"),
    [("import helpers", "pass"), ("pass", "import helpers"), ("pass", "from helpers import factor; helpers = np")],
)
@pytest.mark.sampled(6)
def test_an_import_from_beside_the_script_is_refused(package, tmp_path, above, inside):
    (tmp_path / "helpers.py").write_text("factor = 2.0\n")
    (tmp_path / "local_script.py").write_text(SCRIPT.format(above=above, inside=inside))
    before = {p for p in package.rglob("*") if "__pycache__" not in p.parts}
    said = op("local_script:local", status=1)
    assert "geo::local imports helpers, which stands beside local_script.py" in said and "move what it needs" in said
    assert before == {p for p in package.rglob("*") if "__pycache__" not in p.parts}
    sys.modules.pop("local_script")


def test_an_import_of_the_package_itself_or_of_what_is_installed_is_taken(package, monkeypatch):
    monkeypatch.chdir(package / "src")
    (package / "src" / "click").mkdir()  # a folder of that name is not what is imported
    inside = "from graphdock_geo import helpers; import json"
    (package / "src" / "local_script.py").write_text(SCRIPT.format(above="import click as c", inside=inside + "; c"))
    done = new("op", "--from", "local_script:local", "--package", "graphdock_geo")
    assert done.exit_code == 0 and "geo.Local: its entry is in geo.yaml" in done.output, done.output
    assert "import click as c" in (package / "src" / "graphdock_geo" / "local_function.py").read_text()
    sys.modules.pop("local_script")


@pytest.mark.parametrize("name", ["pairs", "total"])
@pytest.mark.sampled(4)
def test_an_op_whose_sample_nobody_can_tell_gets_one_to_fill(package, name):
    said = op(f"notebook_ops:{name}")
    assert f"TODO: geo.yaml has no sample of geo.{name.capitalize()}" in said
    source = package / "src" / "graphdock_geo"
    spec = source / "specs" / "geo.yaml"
    text = spec.read_text()
    entry = text[text.index(f"- name: {name.capitalize()}") :]
    assert "  # TODO: a sample that fits" in entry and "\n  # tests:\n" in entry
    filled = entry.partition("  # TODO")[0] + entry.partition("of this op\n")[2].replace("  # ", "  ")
    spec.write_text(text.replace(entry, filled))
    child("-m", "graphdock_opgen", "generate", str(source), cwd=package)
    found = plan(source)
    assert found.errors == () and drift(found) == []
    assert [op.spec.tests.samples for op in found.library.ops if op.name == name.capitalize()][0]


def test_an_op_whose_sample_is_told_needs_none(package):
    assert "TODO" not in op("notebook_ops:wave")


@pytest.mark.exhaustive
def test_it_is_taken_once(package):
    op("notebook_ops:wave")
    assert "declares the op 'geo.Wave' already" in op("notebook_ops:wave", status=1)


def test_a_module_of_that_name_is_not_overwritten(package):
    (package / "src" / "graphdock_geo" / "wave_function.py").write_text("mine = 1\n")
    assert "wave_function.py exists" in op("notebook_ops:wave", status=1)


@pytest.mark.parametrize(
    "args", [("op",), ("op", "Name", "--from", "a:b"), ("op", "--from", "nocolon"), ("op", "--from", "a.b:c.d")]
)
@pytest.mark.sampled(8)
def test_usage(package, args):
    done = new(*args, "--package", "graphdock-geo/src/graphdock_geo")
    assert done.exit_code == 2 and ("--from" in done.output)
