"""What a command may be asked to look at: a function, or what a program built while it was loaded."""

import json
import re
from pathlib import Path

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.cli.target import build
from graphdock.errors import InvalidArgumentError, NotFoundError

PROGRAM = """\
import graphdock as tf

print("loaded")
x = tf.placeholder(tf.float32, [2, 3], name="x")
both = {"sum": tf.reduce_sum(x), "twice": [x + x]}
v = tf.Variable(tf.zeros([2]), name="v")
name = "x:0"
number = 5

def step():
    print("built")
    return tf.negative(x, name="minus")

def one(a):
    return a

def bad():
    return 1 / 0

if __name__ == "__main__":
    raise SystemExit(3)
"""


@pytest.fixture
def work(site):
    folder = Path.cwd()
    (folder / "program.py").write_text(PROGRAM)
    return folder


def run(*arguments):
    return CliRunner().invoke(cli, ["explain", *arguments])


def test_the_readmes_own_program_can_be_explained(site):
    text = (Path(__file__).parents[2] / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.S)[1]
    Path("program.py").write_text(program)
    assert "--backends a,b" in text and "program.py --fetch train_op" in text
    done = run("program.py:train_op", "--json")
    assert done.exit_code == 0, done.output
    assert any(row["op"].endswith("Adagrad") for row in json.loads(done.stdout)["rows"])


@pytest.mark.parametrize(
    ("name", "ops"),
    [("both", {"Sum", "Add"}), ("v", {"ReadVariableOp"}), ("step", {"Neg"}), ("name", set())],
)
def test_a_target_is_a_function_or_what_would_be_fetched(work, name, ops):
    done = run(f"program.py:{name}", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert ops <= {row["op"] for row in rows}, "what the program prints is not on standard output"
    assert "loaded" in done.stderr


def test_all_adds_who_lost_and_leaves_nothing_out(work):
    (work / "folded.py").write_text(
        "import graphdock as tf\ny = tf.exp(tf.constant([1.0]) + tf.constant(2.0)) * tf.random_uniform([1])\n"
    )
    plain, whole = run("folded.py:y"), run("folded.py:y", "--all")
    assert plain.exit_code == whole.exit_code == 0, whole.output
    plan = plain.stdout.splitlines()
    assert plan == [line for line in whole.stdout.splitlines() if not line.startswith("    ")]
    assert any(line.startswith("passes  ") for line in plan)


def test_the_graph_is_that_of_what_is_fetched(work):
    other = "import graphdock as tf\nmine = tf.Graph()\nwith mine.as_default():\n    y = tf.constant(1.0) + 2.0\n"
    (work / "other.py").write_text(other)
    step = build("other.py:y")
    graph, fetches = step.graph, step.fetches
    assert fetches.graph is graph
    assert graph is not tf.get_default_graph()
    assert run("other.py:y").exit_code == 0


@pytest.mark.parametrize("target", ["..:x", ".a:x", "a..b:x", ":x", "program.py:", "program.py:a b", "a b:x"])
def test_what_is_no_target(work, target):
    done = run(target)
    assert done.exit_code == 1
    assert f"{target!r} is not a target" in done.stderr


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ("program.py:bath", NotFoundError, "did you mean 'both'?"),
        ("absent.py:x", NotFoundError, "no file 'absent.py'"),
        ("no_such_module_here:x", NotFoundError, "no module 'no_such_module_here'"),
        ("program.py:one", InvalidArgumentError, "it needs a"),
        ("program.py:bad", InvalidArgumentError, "ZeroDivisionError: division by zero"),
        ("broken.py:x", InvalidArgumentError, "SyntaxError"),
        ("quits.py:x", InvalidArgumentError, "SystemExit: 4"),
        ("lacks.py:x", InvalidArgumentError, "No module named 'no_such_module_here'"),
        ("lacks:x", InvalidArgumentError, "No module named 'no_such_module_here'"),
    ],
)
def test_faults_of_targets_are_messages(work, target, error, text):
    (work / "broken.py").write_text("x = (")
    (work / "quits.py").write_text("raise SystemExit(4)")
    (work / "lacks.py").write_text("import no_such_module_here")
    with pytest.raises(error, match=re.escape(text)):
        build(target)
    done = run(target)
    assert isinstance(done.exception, SystemExit)
    assert done.stderr.rstrip().count("Traceback") == 0


def test_the_line_of_a_program_that_fails_is_named(work):
    with pytest.raises(InvalidArgumentError) as caught:
        build("program.py:bad")
    line = PROGRAM.splitlines().index("    return 1 / 0") + 1
    assert caught.value.site.endswith(f"program.py:{line}")


def test_what_can_not_be_fetched_is_said(work):
    done = run("program.py:number")
    assert done.exit_code == 1
    assert "cannot fetch 5" in done.stderr


def test_what_is_suggested_for_a_name_is_no_module(work):
    (work / "imports.py").write_text("import numpy as np\nimport graphdock as tf\nnet = tf.constant(1.0)\n")
    with pytest.raises(NotFoundError, match="has no 'npp'") as raised:
        build("imports.py:npp")
    assert raised.value.hint is None
    with pytest.raises(NotFoundError) as raised:
        build("imports.py:nett")
    assert raised.value.hint == "did you mean 'net'?"


def test_a_lock_is_written_and_a_difference_is_printed(work):
    done = run("program.py:step", "--lock", "step.lock")
    assert done.exit_code == 0 and "step.lock: 1 nodes" in done.stderr
    assert json.loads(Path("step.lock").read_text())["nodes"]["minus"]["kernel"] == "cpu.neg"
    same = run("program.py:step", "--diff", 'lock = "step.lock"')
    assert same.exit_code == 0 and "every node runs where, and as what, it did" in same.stdout
    Path("other.toml").write_text('[session]\nplacer = "simulated"\ndevice_count = {cpu = 2}\n')
    other = json.loads(run("program.py:step", "--diff", "other.toml", "--json").stdout)
    assert set(other) == {"before", "after", "changes"}
    assert "--diff takes a file, or settings" in run("program.py:step", "--diff", "neither").output
    assert "can't be written" in run("program.py:step", "--lock", "none/step.lock").output


def test_a_page_is_written(work):
    assert run("program.py:step", "--html", "step.html").exit_code == 0
    assert "cpu.neg" in Path("step.html").read_text()
    assert "can't be written" in run("program.py:step", "--html", "none/step.html").output
