"""``graphdock profile``: its table on the demo, JSON, the trace file, and what is wrong with a call."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.cli import cli

GOLDEN = Path(__file__).parents[1] / "golden" / "profile_demo.txt"
DEMO = "graphdock_tf1.demo:training_step"
PROGRAM = """
import graphdock as tf
import numpy as np

def step():
    x = tf.placeholder(tf.float32, [4, 4], name="x")
    w = tf.Variable(tf.ones([4, 4]), name="w")
    return [tf.matmul(x, w, name="product")], {x: np.ones((4, 4), np.float32)}

def hungry():
    return tf.placeholder(tf.float32, [2], name="hungry") * 2.0

constant = tf.constant(1.0) + 2.0
"""


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["profile", *arguments])


def without_times(text):
    """The table with its rows in order of name, and neither times nor what follows from them."""
    head, _, table = text.partition("\n\n")
    times = re.compile(r"[\d.e+-]+ (?:us|ms|s)\b|[\d.]+%|[\d.]+ [KMGT]?i?B/s")
    lines = [" ".join(times.sub("*", line).split()) for line in (*head.splitlines(), *table.splitlines())]
    first = next(i for i, line in enumerate(lines) if line.startswith("node "))
    return "\n".join([*lines[: first + 1], *sorted(lines[first + 1 :])]) + "\n"


@pytest.mark.plain
def test_the_demos_training_step():
    done = run(DEMO, "--steps", "3", "--limit", "0", "--backends", "cpu")
    assert done.exit_code == 0, done.output
    assert without_times(done.stdout) == GOLDEN.read_text()


def test_rows_can_stand_for_ops_and_only_the_dearest_be_shown():
    done = run(DEMO, "--steps", "2", "--by", "op", "--limit", "2")
    table = done.stdout.partition("\n\n")[2].splitlines()
    assert table[0].split() == ["op", "calls", "time", "share", "bytes", "rate"]
    assert len(table) == 4 and re.fullmatch(r"and \d+ more, [\d.]+ [um]s", table[-1])


def test_json_has_every_grouping_and_what_is_held():
    done = run("program.py:step", "--steps", "2", "--json")
    facts = json.loads(done.stdout)
    assert facts["steps"] == 2 and facts["held"]["host"]["variables"] == 64
    (product,) = [row for row in facts["node"] if row["name"] == "product" and row["kernel"] == "cpu.mat_mul"]
    assert product["calls"] == 1 and product["nbytes"] == 3 * 64 and product["device"] == "cpu:0"
    assert {"op", "kernel", "device"} <= set(facts)


def test_the_trace_is_written_where_it_was_asked_for(work):
    done = run("program.py:step", "--trace", "out.json", "--steps", "4", "--software")
    assert done.exit_code == 0 and "ui.perfetto.dev" in done.stdout
    trace = json.loads((work / "out.json").read_text())
    assert sum(event["name"] == "product" and event["cat"] == "MatMul" for event in trace["traceEvents"]) == 4


def test_a_program_without_feeds_or_variables_is_profiled():
    assert run("program.py:constant", "--steps", "1").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("program.py:hungry",), ["'hungry' is needed", "made at", "a pair, (fetches, feed_dict)"]),
        (("program.py:missing",), ["no 'missing'"]),
        (("program.py:step", "--steps", "0"), ["--steps"]),
        (("program.py:step", "--trace", "no/such/place.json"), ["no folder 'no/such'"]),
        (("program.py:step", "--by", "nodes"), ["--by", "node"]),
        (("program.py:step", "--backends", "gpu"), ["gpu"]),
    ],
)
def test_what_is_wrong_is_said(arguments, words):
    done = run(*arguments)
    assert done.exit_code != 0
    assert all(word in done.output + str(done.exception) for word in words), done.output
