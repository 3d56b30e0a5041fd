"""Regions of plans as programs: what they say, what they compute, and what is in none."""

from __future__ import annotations

import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler

RNG = np.random.default_rng(3)


class Lab:
    """Runs a function of tensors with every region evaluated from its program, and on cpu alone."""

    def __init__(self, process_host):
        self.host = process_host(Host())
        self.compiler = ReferenceCompiler()
        hook = hookimpl(specname="register_region_compilers")(lambda: [self.compiler])
        self.host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))

    def run(self, build, feeds, **config):
        """The results of both ways, and the explanation of the first."""
        with tf.Graph().as_default():
            given = {name: tf.placeholder(a.dtype, a.shape, name=name) for name, a in feeds.items()}
            fetches = build(**given)
            feed = {given[name]: a for name, a in feeds.items()}
            with tf.Session(config=tf.SessionConfig(backends=["cpu"], **config), host=self.host) as sess:
                want = sess.run(fetches, feed)
            with tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"], **config), host=self.host) as sess:
                return sess.run(fetches, feed), want, sess.explain(fetches, feed)

    def same(self, build, feeds, rtol=2e-5):
        got, want, explained = self.run(build, feeds)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=rtol)
        return explained


@pytest.fixture
def lab(process_host):
    return Lab(process_host)


def normal(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def layer_norm(x, g, b):
    m = tf.reduce_mean(x, -1, keepdims=True)
    d = x - m
    y = d * tf.rsqrt(tf.reduce_mean(d * d, -1, keepdims=True) + 1e-5) * g + b
    return [y, *tf.gradients(tf.reduce_sum(y * y), [x, g, b])]


def test_a_hand_written_layer_norm_and_its_gradient_are_one_region(lab):
    explained = lab.same(layer_norm, {"x": normal(4, 6, 8), "g": normal(8), "b": normal(8)})
    assert explained.kernels() == {"lab.reference": 1}


def test_gelu_and_a_power_by_hand_are_one_region_each_with_their_gradients(lab):
    def gelu(x):
        y = 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        return [y, *tf.gradients(y, [x])]

    def power(x):
        return [x * x * x * x, *tf.gradients(x * x * x * x, [x])]

    for build in (gelu, power):
        assert lab.same(build, {"x": normal(5, 7)}).kernels() == {"lab.reference": 1}


def test_what_the_program_of_a_softmax_says(lab):
    def build(x):
        e = tf.exp(x - tf.reduce_max(x, 1, keepdims=True))
        return [e / tf.reduce_sum(e, 1, keepdims=True)]

    lab.same(build, {"x": normal(3, 5)})
    assert str(lab.compiler.programs_built[0]).splitlines() == [
        "region Max (i: 3, j: 5) {",
        "  x: float32[i, j], aligned 4",
        "  t0: float32 = input x  # Max",
        "  t1: float32 [i] = max t0 over j  # Max",
        "  t2: float32 = sub t0, t1  # sub",
        "  t3: float32 = exp t2  # Exp",
        "  t4: float32 [i] = sum t3 over j  # Sum",
        "  t5: float32 = divide t3, t4  # truediv",
        "  return t5 as truediv: float32[i, j]",
        "}",
    ]


def test_rows_and_columns_of_a_square_are_told_apart(lab):
    """A mean of each row without its dim is broadcast along the columns, as in NumPy: not in the region that it was made in."""

    def build(x):
        by_row = tf.reduce_mean(x, 1)
        return [x - by_row, x - tf.expand_dims(by_row, 1), tf.reshape(by_row, [4, 1]) * x]

    explained = lab.same(build, {"x": normal(4, 4)})
    assert len({str(p) for p in lab.compiler.programs_built}) == 1 and "cpu.sub" in explained.kernels()


def test_halves_are_held_in_float32_and_rounded_where_they_are_written(lab):
    x = normal(3, 8).astype(np.float16)
    got, _, _ = lab.run(
        lambda x: [tf.reduce_sum(x * x, 1), tf.cast(tf.cast(x * 3.0, tf.float32), tf.bfloat16)], {"x": x}
    )
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(got[0], (wide * wide).sum(1).astype(np.float16))
    terms = [t for program in lab.compiler.programs_built for t in program.terms]
    assert {t.dtype.name for t in terms} == {"float32"}
    assert {t.value for t in terms if t.op == "round"} == {"bfloat16"}, "the user's cast rounds"


def test_a_constant_tensor_enters_and_a_number_is_a_literal(lab):
    table = normal(6)
    lab.same(lambda x: [tf.tanh(x * 2.5 + tf.constant(table))], {"x": normal(4, 6)})
    program = lab.compiler.programs_built[0]
    assert len(program.inputs) == 2 and 2.5 in {t.value for t in program.terms if t.op == "literal"}


def test_a_view_at_the_rim_stays_outside_and_one_within_costs_nothing(lab):
    def build(x):
        flat = tf.reshape(x, [12])
        return [tf.reshape(tf.tanh(flat * 2.0) + 1.0, [3, 4])]

    explained = lab.same(build, {"x": normal(3, 4)})
    assert explained.kernels() == {"lab.reference": 1, "cpu.reshape": 2}

    def within(x):
        return [tf.expand_dims(tf.exp(x * 0.5), 1) * tf.expand_dims(x, 1) + 1.0]

    assert lab.same(within, {"x": normal(5)}).kernels() == {"lab.reference": 1, "cpu.expand_dims": 1}


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda x: [tf.cast(x * 2.0, tf.int32)], (4,)),
        (lambda x: [tf.transpose(x * 2.0) + 1.0], (3, 3)),
        (lambda x: [tf.cumsum(x) + 1.0], (4,)),
    ],
)
def test_what_no_region_says_stays_a_kernel(lab, build, shape):
    explained = lab.same(build, {"x": normal(*shape)})
    assert explained.kernels().get("lab.reference", 0) == 0


def test_a_value_that_nothing_reads_later_may_be_written_over(lab):
    def build(x):
        made = tf.cumsum(x)
        return [tf.tanh(made * 2.0) + 1.0, x * 2.0 + 1.0]

    lab.same(build, {"x": normal(4, 4)})
    over = {p.inputs[0].name: [o.inplace for o in p.outputs] for p in lab.compiler.programs_built}
    assert over == {"Cumsum": [(0,)], "x": [()]}


def test_a_candidate_says_which_terms_a_node_computes(lab):
    """Numbers are the program's, what nobody needs is in none, and what two nodes compute is in both."""
    told = []

    class Telling(ReferenceCompiler):
        def claim(self, candidate):
            terms = candidate.program.terms
            told.append(
                {
                    n.name: [terms[t].op for t in candidate.terms[n]]
                    for n in candidate.graph.nodes
                    if n in candidate.terms
                }
            )
            return super().claim(candidate)

    lab.compiler.__class__ = Telling

    def build(x):
        mean = tf.reduce_mean(x, -1, keepdims=True, name="mean")
        wide = tf.subtract(x, mean, name="wide")
        return [
            tf.sqrt(tf.reduce_mean(wide * 2.0, -1, keepdims=True, name="again"), name="root")
            + tf.nn.dropout(wide, rate=0.5, seed=3, name="drop")
        ]

    lab.run(build, {"x": np.abs(normal(3, 5)) + 9})
    terms = next(t for t in told if "wide" in t)  # explained once more
    assert terms["mean"] == ["input", "sum", "extent", "cast", "divide"]
    assert terms["wide"] == ["input", "sub"] and terms["root"] == ["sqrt"]
    assert terms["again"] == ["extent", "cast", "sum", "divide"]
    assert sum("draw" in made for made in terms.values()) == 1
