"""A wheel with host, std, tf1, cpu and executor alone trains the seeds' network; each other room can be left out.

What a program then lacks is an error that names the room and says what to install.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Import packages of the wheel, and nothing else of graphdock's.
KEPT = ("graphdock", "graphdock_std", "graphdock_tf1", "graphdock_cpu", "graphdock_executor")

#: The seeds' program with fewer steps, and what it loaded.
PROGRAM = """
import json, sys
import numpy as np
import graphdock as tf

x = tf.placeholder(tf.float32, [10, 784])
y = tf.placeholder(tf.float32, [10, 10])
W_1 = tf.Variable(tf.random_uniform([784, 10], seed=1))
b_1 = tf.Variable(tf.zeros([10]))
layer_1 = tf.matmul(x, W_1) + b_1
loss = tf.nn.softmax_cross_entropy_with_logits(logits=layer_1, labels=y)
train_op = tf.train.AdagradOptimizer(0.01).minimize(loss)
rng = np.random.default_rng(0)
x_data, y_data = rng.normal(size=(10, 784)), np.eye(10)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    before = sess.run(loss, {x: x_data, y: y_data})
    for step in range(200):
        sess.run(train_op, {x: x_data, y: y_data})
    after = sess.run(loss, {x: x_data, y: y_data})
print(json.dumps({
    "before": float(before.mean()),
    "after": float(after.mean()),
    "packages": sorted({name.partition(".")[0] for name in sys.modules if name.startswith("graphdock")}),
}))
"""


def minimal(text: str) -> str:
    """A pyproject.toml without the packages and entry points of other rooms."""
    table = tomllib.loads(text)
    build, project, wheel = table["build-system"], table["project"], table["tool"]["hatch"]["build"]["targets"]["wheel"]
    tables = {
        "build-system": build,
        "project": {key: project[key] for key in ("name", "version", "dependencies")},
        "project.scripts": project["scripts"],
        "tool.hatch.build.targets.wheel": {
            "packages": [p for p in wheel["packages"] if p.rpartition("/")[2] in KEPT],
        },
        "tool.hatch.build.targets.wheel.force-include": {
            source: there for source, there in wheel["force-include"].items() if there.partition("/")[0] in KEPT
        },
    }
    for group, points in project["entry-points"].items():
        tables[f"project.entry-points.{json.dumps(group)}"] = {
            name: module for name, module in points.items() if module.partition(".")[0] in KEPT
        }
    return "".join(
        f"[{name}]\n" + "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in rows.items())
        for name, rows in tables.items()
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory, environments):
    source = tmp_path_factory.mktemp("source")
    for package in KEPT:
        (found,) = [p for p in (*ROOT.glob("host/*"), *ROOT.glob("plugins/*/*")) if p.name == package]
        there = source / found.relative_to(ROOT)
        shutil.copytree(found, there, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "errors", source / "docs" / "errors")
    (source / "pyproject.toml").write_text(minimal((ROOT / "pyproject.toml").read_text()))
    place = environments.Environment(tmp_path_factory.mktemp("environment"))
    place.install(environments.wheel(source, tmp_path_factory.mktemp("wheels")))
    return place


def test_the_wheel_has_no_other_room(environment):
    found = environment.run("-c", "import graphdock as tf; print(*(p.name for p in tf.default_host().plugins()))")
    assert set(found.stdout.split()) <= {"std", "tf1", "cpu", "executor"}
    listed = environment.run(
        "-c", "import pathlib, graphdock; print(*pathlib.Path(graphdock.__file__).parents[1].glob('graphdock*'))"
    )
    assert {Path(p).name for p in listed.stdout.split() if ".dist-info" not in p} == set(KEPT)


def test_a_command_of_a_room_that_is_left_out_says_what_to_install(environment):
    for plugin, command in {
        "opgen": ["new", "plugin", "lab"],
        "commands": ["plugins"],
        "profiler": ["profile"],
    }.items():
        done = environment.run("-m", "graphdock", *command)
        assert done.returncode == 2
        assert f"it is brought by the plugin {plugin!r}, which this installation leaves out: pip install" in done.stderr


NAMES = """
import graphdock as tf
for name in ("custom_op", "load_op_library", "profiler", "import_graph_def", "GraphDef"):
    try:
        getattr(tf, name)
    except AttributeError as error:
        print(error)
try:
    from graphdock.testing import opcheck
except ModuleNotFoundError as error:
    print(error)
graph = tf.Graph()
for write in (graph.to_json, graph.as_graph_def):
    try:
        write()
    except tf.errors.UnavailableError as error:
        print(error.hint)
try:
    tf.RunMetadata().step_stats
except AttributeError as error:
    print(error)
with tf.Session() as session:
    print(session.run(tf.constant(2.0)), session._repr_html_(), session.graph._repr_html_())
    try:
        session.explain(tf.constant(1.0))
    except tf.errors.UnavailableError as error:
        print(error.hint)
"""


def test_a_name_of_a_room_that_is_left_out_says_what_to_install(environment):
    done = environment.run("-c", NAMES)
    assert done.returncode == 0, done.stderr
    *said, shown, explained = done.stdout.splitlines()
    assert shown == "2.0 None None" and "'profiler', which this installation leaves out" in explained
    rooms = ("customop", "opgen", "profiler", *["tensorflow"] * 2, "testing", *["tensorflow"] * 3)
    for line, plugin in zip(said, rooms, strict=True):
        assert f"it is brought by the plugin {plugin!r}, which this installation leaves out: pip install" in line


def test_the_seeds_program_trains(environment):
    done = environment.run("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["after"] < said["before"] / 2
    assert set(said["packages"]) <= set(KEPT)
