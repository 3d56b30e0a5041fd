"""Answers of region compilers that the contract forbids: each is an error that names the compiler, and says what is wrong."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Claim, KernelRefused, Refusal, RegionCompiler
from graphdock_testing.region_reference import ReferenceCompiler
from interpreting_compiler import InterpretingCompiler

X = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)


def gelu(x):
    return (tf.tanh(x * 0.5) + 1.0) * x - x


class Broken(InterpretingCompiler):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def claim(self, candidate):
        return self.answer(candidate)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda c: None, "answers neither with a Claim nor with a Refusal"),
        (lambda c: Refusal(" "), "refuses without a reason"),
        (lambda c: Claim((), 1.0), "claims no node of the candidate"),
        (lambda c: Claim(tuple(c.graph.nodes[1:2] * 2), 1.0), "claims one node that can be no region by itself"),
        (lambda c: Claim(tuple(c.source.values()), 1.0), "claims nodes that are the plan's, not candidate.graph's"),
        (lambda c: Claim(("Tanh", "Mul"), 1.0), "claims what is no node of candidate.graph"),
        (lambda c: Claim((c.graph.nodes[1], c.graph.nodes[-1]), 1.0), "claims nodes that cannot be one"),
        (lambda c: Claim(tuple(c.graph.nodes), float("nan")), "at a cost that is no finite number of microseconds"),
        (lambda c: Claim(tuple(c.graph.nodes), -1.0), "at a cost that is no finite number of microseconds"),
    ],
)
def test_a_compiler_that_breaks_the_contract_is_named(loops, answer, message):
    made = loops(Broken(answer))
    x = tf.placeholder(tf.float32, [2, 4])
    with made.session() as sess, pytest.raises(tf.errors.PluginError) as caught:
        sess.run(gelu(x), {x: X})
    assert "the region compiler lab.interpreter (of lab)" in caught.value.message and message in caught.value.message
    assert caught.value.op is not None and "test_answers.py" in str(caught.value.site)


def test_a_claim_that_raises_names_the_compiler_and_its_plugin(loops):
    made = loops(Broken(lambda candidate: {}["mine"]))
    x = tf.placeholder(tf.float32, [2, 4])
    with made.session() as sess, pytest.raises(tf.errors.PluginError) as caught:
        sess.run(gelu(x), {x: X})
    said = "the region compiler lab.interpreter (of lab) raises KeyError when it is offered a region: 'mine'"
    assert said in caught.value.message and isinstance(caught.value.__cause__, KeyError)
    assert caught.value.op is not None and "test_answers.py" in str(caught.value.site)


class Preparing(InterpretingCompiler):
    """Raises ``error`` when it is to prepare a region."""

    build = RegionCompiler.build
    error: Exception

    def prepare(self, region, ctx):
        raise self.error


class Building(InterpretingCompiler):
    def build(self, region, ctx):
        return [][1]


@pytest.mark.parametrize(
    ("compiler", "what"),
    [
        (
            type("P", (Preparing,), {"error": KeyError("mine")})(),
            "raises KeyError when it is to prepare a region: 'mine'",
        ),
        (Building(), "raises IndexError when it is to build a region: "),
        (
            type("I", (InterpretingCompiler,), {"inplace": lambda self, r: {}["no"]})(),
            "raises KeyError when it says what is in place: 'no'",
        ),
    ],
)
def test_a_bug_names_the_compiler_its_package_and_the_way_without(loops, compiler, what):
    x = tf.placeholder(tf.float32, [2, 4])
    with loops(compiler).session() as sess, pytest.raises(tf.errors.PluginError) as caught:
        sess.run(gelu(x), {x: X})
    assert f"the region compiler lab.interpreter (of lab) {what}" in caught.value.message
    assert "fusion = false" in str(caught.value) and "test_answers.py" in str(caught.value.site)
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_refusal_and_an_error_of_graphdocks_stay_what_they_are(loops):
    x = tf.placeholder(tf.float32, [2, 4])
    with loops(type("P", (Preparing,), {"error": KernelRefused("no room")})()).session() as sess:
        assert "no room" in str(sess.explain(gelu(x), {x: X}))
    out = type("P", (Preparing,), {"error": tf.errors.ResourceExhaustedError("no memory")})()
    with loops(out).session() as sess, pytest.raises(tf.errors.ResourceExhaustedError, match="no memory"):
        sess.run(gelu(x), {x: X})


def overwriting(said):
    """The reference, with this ``inplace``."""
    return type("Over", (ReferenceCompiler,), {"inplace": lambda self, region: said(region)})()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"y": ("x",)}, "names 'y' in inplace, of a region with inputs in0 and outputs out0"),
        ({"out0": ("x",)}, "names 'x' in inplace, of a region with inputs in0 and outputs out0"),
        ({"out1": ("in0",)}, "names 'out1' in inplace"),
    ],
)
def test_inplace_of_names_that_a_region_has_not_is_an_error(loops, said, words):
    x = tf.placeholder(tf.float32, [2, 4])
    with loops(overwriting(lambda region: said)).session() as sess, pytest.raises(tf.errors.PluginError) as caught:
        sess.run(tf.cumsum(gelu(tf.cumsum(x))), {x: X})
    assert f"lab.reference (of lab) {words}" in caught.value.message


def test_a_table_that_is_gathered_from_is_not_written_over(loops):
    x, ids = tf.placeholder(tf.float32, [3, 4], "x"), tf.placeholder(tf.int32, [3])
    y = tf.cumsum(tf.gather(tf.cumsum(x, name="table"), ids) * 2.0 + 1.0)
    compiler = overwriting(lambda region: {"out0": ("in0",)})
    with loops(compiler).session() as sess, pytest.raises(tf.errors.PluginError) as caught:
        sess.run(y, {x: np.ones((3, 4)), ids: [2, 0, 1]})
    assert (
        "out0 (add) take over in0 (table) in inplace, of which RegionOutput.inplace allows nothing"
        in caught.value.message
    )


def test_what_is_gathered_from_dies_for_no_other_reading_of_it(loops):
    made = loops()
    x, ids = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.int32, [3])
    table = tf.cumsum(x)
    y = tf.cumsum(tf.tanh(tf.gather(table, ids)) + table)
    with made.session() as sess:
        got = sess.run(y, {x: np.ones((3, 4)), ids: [2, 0, 1]})
    whole = np.cumsum(np.ones((3, 4)), 0)
    np.testing.assert_allclose(got, np.cumsum(np.tanh(whole[[2, 0, 1]]) + whole, 0), 1e-6)
    (program,) = made.compiler.programs_built[-1:]
    assert len(program.inputs) == 3 and program.outputs[0].inplace == () and not any(i.dying for i in program.inputs)


def test_what_the_program_allows_is_granted(loops):
    taken = []

    class Over(ReferenceCompiler):
        def inplace(self, region):
            program = region.program
            return {
                f"out{n}": tuple(f"in{program.inputs[i].source}" for i in o.inplace) for n, o in enumerate(program.made)
            }

        def build(self, region, ctx):
            taken.append(ctx.outputs[0].mode.kind)
            return super().build(region, ctx)

    x = tf.placeholder(tf.float32, [2, 4])
    with loops(Over()).session() as sess:
        np.testing.assert_allclose(
            sess.run(tf.cumsum(tf.tanh(tf.cumsum(x)) * 2.0), {x: X}), np.cumsum(np.tanh(np.cumsum(X, 0)) * 2, 0), 1e-5
        )
    assert taken == ["inplace"]
