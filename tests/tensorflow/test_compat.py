"""``graphdock compat``: the counts of the API, and what of a script is missing."""

from __future__ import annotations

import json

from click.testing import CliRunner
from graphdock.cli import cli
from graphdock_tensorflow.catalogue import counts

SCRIPT = """\
import tensorflow as tf
x = tf.mul(tf.constant(1), tf.constant(2))
queue = tf.CriticalSection()
tf.keras.layers.Dense(3)
tf.no_such_thing
queue = tf.CriticalSection()
"""


def run(*arguments):
    return CliRunner().invoke(cli, ["compat", *map(str, arguments)])


def test_the_counts():
    done = run()
    assert done.exit_code == 0
    assert f"{counts()['here']} are here, {counts()['planned']} are planned" in done.stdout.splitlines()[-1]
    assert json.loads(run("--json").stdout)["names"]["matmul"] == {"status": "here", "group": ""}
    assert "tf.CriticalSection" in run("--all").stdout


def test_a_script(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "fine.py").write_text("import tensorflow as tf\ntf.constant(1)\n")
    done = run(tmp_path)
    assert done.exit_code == 1
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[1:-1]}
    assert "train.py:3 and 1 more" in rows["tf.CriticalSection"] and "planned" in rows["tf.CriticalSection"]
    assert "refused" in rows["tf.keras.layers.Dense"]
    assert "tf.multiply" in rows["tf.mul"]
    assert "not TensorFlow's" in rows["tf.no_such_thing"]
    assert (
        done.stdout.splitlines()[-1]
        == "2 files use 5 names of TensorFlow: 1 here, 4 not. `graphdock run --before-1.0` answers 1 of these."
    )
    facts = json.loads(run(tmp_path, "--json").stdout)
    assert (facts["names"], facts["here"], len(facts["missing"])) == (5, 1, 5)
    assert run(tmp_path / "fine.py").exit_code == 0


def test_insides_of_tensorflow_are_told_apart_from_what_it_never_had(tmp_path):
    (tmp_path / "mnist.py").write_text("from tensorflow.examples.tutorials.mnist import input_data\n")
    (tmp_path / "ops.py").write_text("from tensorflow.python.layers import core\n")
    said = run(tmp_path / "mnist.py").stdout
    assert "not public" in said and "`graphdock run` answers it" in said
    assert (
        said.splitlines()[-1] == "1 file uses 1 name of TensorFlow: 0 here, 1 not. `graphdock run` answers 1 of these."
    )
    assert "tensorflow.python is the inside of TensorFlow" in run(tmp_path / "ops.py").stdout


def test_a_file_that_is_no_python(tmp_path):
    (tmp_path / "old.py").write_text("print 'x'\n")
    done = run(tmp_path / "old.py")
    assert done.exit_code == 1 and "not read: " in done.stdout and "old.py:1: not Python 3" in done.stdout
    (tmp_path / "fine.py").write_text("import tensorflow as tf\ntf.constant(1)\n")
    done = run(tmp_path, "--json")
    assert done.exit_code == 1
    facts = json.loads(done.stdout)
    assert facts["here"] == 1 and [f["file"] for f in facts["unread"]] == [str(tmp_path / "old.py")]


def test_names_of_the_inside_are_told_their_public_twin(tmp_path):
    (tmp_path / "ops.py").write_text(
        "from tensorflow.python.ops import control_flow_ops, math_ops, nn_ops as nn\nmath_ops.matmul\nnn.conv2d\n"
        "math_ops._private\ncontrol_flow_ops.with_dependencies\n"
    )
    rows = {line.split()[0]: line for line in run(tmp_path / "ops.py").stdout.splitlines()}
    assert rows["tf.python.ops.math_ops.matmul"].endswith(": tf.matmul")
    assert rows["tf.python.ops.nn_ops.conv2d"].endswith(": tf.nn.conv2d")
    assert rows["tf.python.ops.control_flow_ops.with_dependencies"].endswith(": `graphdock run` answers it")
    assert "tf._private" not in rows["tf.python.ops.math_ops._private"]


OLD = """\
# tf.mul stays in a comment
import tensorflow as tf, os
import tensorflow.contrib.slim as slim
from tensorflow.contrib import rnn
from tensorflow.python.ops import math_ops
import tensorflow
x = tf.mul(tf.pack([1, 2]), tf.mul(3, 4)); s = "tf.mul é"; y = tf.neg(x)
"""
NEW = """\
# tf.mul stays in a comment
import graphdock as tf, os
import graphdock.contrib.slim as slim
from graphdock.contrib import rnn
from tensorflow.python.ops import math_ops
import graphdock as tensorflow
x = tf.multiply(tf.stack([1, 2]), tf.multiply(3, 4)); s = "tf.mul é"; y = tf.negative(x)
"""


def test_rewriting_shows_a_diff_and_writes_when_told_to(tmp_path):
    file = tmp_path / "old.py"
    file.write_text(OLD, encoding="utf-8", newline="\r\n")
    before = file.read_bytes()
    refused = CliRunner().invoke(cli, ["compat", "--rewrite", str(file)], input="n\n")
    assert "-import tensorflow as tf, os" in refused.stdout and file.read_bytes() == before
    done = run(file, "--rewrite", "--yes")
    assert "+import graphdock as tf, os" in done.stdout
    assert file.read_bytes() == NEW.replace("\n", "\r\n").encode()
    assert "+++" not in run(file, "--rewrite", "--yes").stdout


def test_behaviours_are_told_beside_names_and_fail_nothing(tmp_path):
    (tmp_path / "loop.py").write_text(
        "import tensorflow as tf\nfrom tensorflow import Print as show\nx = tf.map_fn(f, y)\nshow(x, [x], first_n=3)\n"
        "sess.partial_run(h, x)\n"
    )
    done = run(tmp_path / "loop.py")
    assert done.exit_code == 0
    said = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [line.partition("  (")[0].strip() for line in said[:1]] == ["tf.map_fn, tf.scan, tf.foldl, tf.foldr"]
    assert any("tf.Print(first_n)" in line and "loop.py:4): counted in each plan" in line for line in said)
    assert any(".partial_run" in line and "loop.py:5" in line for line in said)
    rows = json.loads(run(tmp_path / "loop.py", "--json").stdout)["differing"]
    assert {row["name"] for row in rows} >= {"map_fn", "Print", ".partial_run"} and all(row["why"] for row in rows)
