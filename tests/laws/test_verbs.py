"""What an op does is said once, and every command says the same."""

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.cli import cli

OPS = ["Const", "Cond", "While", "PyFunc", "Identity", "NoOp", "ReadVariableOp", "AssignVariableOp", "VarHandleOp"]


@pytest.mark.parametrize("op", [op for op in OPS if op not in ("ReadVariableOp", "AssignVariableOp", "Identity")])
def test_the_kernels_of_what_the_host_runs_itself_are_no_finding(op):
    done = CliRunner().invoke(cli, ["kernels", op])
    assert done.exit_code == 0 and "host" in done.stdout


@pytest.mark.parametrize("op", ["ReadVariableOp", "AssignVariableOp"])
def test_a_kernel_that_no_session_runs_is_not_listed(op):
    done = CliRunner().invoke(cli, ["kernels", op])
    assert done.exit_code == 0 and "cpu." not in done.stdout


@pytest.mark.parametrize("op", ["Add", "MatMul"])
def test_the_kernel_that_is_listed_is_the_one_that_a_session_runs(op):
    x = tf.placeholder(tf.float32, [2, 2])
    fetch = {"Add": lambda: x + x, "MatMul": lambda: tf.matmul(x, x)}[op]()
    with tf.Session() as sess:
        (kernel,) = sess.explain(fetch).kernels()
    assert kernel in CliRunner().invoke(cli, ["kernels", op]).stdout
