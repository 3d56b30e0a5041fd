"""``graphdock ops X``: what the author of a kernel must know of an op, from its spec, its OpDef and the manifests."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from graphdock.cli import cli


def about(op):
    done = CliRunner().invoke(cli, ["ops", op, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["author"]


def test_facts_errors_samples_and_kernels():
    said = about("Mul")
    assert said["facts"][:1] == ["scalar: x * y"] and "neutral: {x: 1, y: 1}" in said["facts"]
    assert said["errors"] == ["an error that says 'broadcast': x={shape: [2, 3]}, y={shape: [2]}"]
    assert "x={shape: [0, 3]}, y={shape: [1, 3]}" in said["samples"]
    assert said["oracle"] == ["graphdock_std.reference.math:mul"]
    assert any(line.startswith("cpu.mul on cpu") for line in said["kernels"])


def test_memory_spaces_and_handles():
    assert about("Sum")["host memory"] == ["axis: a NumPy array, whatever the device"]
    assert about("ResourceApplyGradientDescent")["handles"] == ["var: writes"]


@pytest.mark.parametrize("op", ["RandomUniform", "TruncatedNormal"])
def test_random_ops_say_where_their_numbers_come_from(op):
    text = " ".join(about(op)["random"])
    for word in ("Philox4x64-10", "(seed, seed2)", "tf.set_random_seed", "ordinal", "iteration"):
        assert word in text
    assert about("Mul")["random"] == []


def test_an_op_of_a_package(toy):
    said = about("toy.Scale")
    assert said["samples"] and [line.partition(" on ")[2].partition(",")[0] for line in said["kernels"]] == [
        "cpu",
        "toy",
    ]
    printed = CliRunner().invoke(cli, ["ops", "toy.Scale"]).stdout
    assert "samples       " in printed and "kernels       toy." in printed
