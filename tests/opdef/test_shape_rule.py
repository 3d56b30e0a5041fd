"""The shape language: patterns and expressions on their own, and std's rules against NumPy's results."""

from __future__ import annotations

import gc
import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts.opdef import ArgDef, AttrDef, OpDef, TypeVarDef
from graphdock.errors import OpSpecError, ShapeError
from graphdock.opdef.expression import compile_expression
from graphdock.opdef.shape_rule import ShapeRule, rule_for


def rule(inputs, outputs, **fields):
    args = tuple(ArgDef(n, "T", s, **kw) for n, s, kw in [(i + ({},))[:3] for i in inputs])
    outs = tuple(ArgDef(n, "T", s, **kw) for n, s, kw in [(o + ({},))[:3] for o in outputs])
    return ShapeRule(OpDef("Test", inputs=args, outputs=outs, types=(TypeVarDef("T"),), **fields))


def infer(r, *shapes, **attrs):
    return r.infer(attrs, [s if isinstance(s, list) else [s] for s in shapes], lambda i: None)


def test_symbols_bind_and_must_agree():
    r = rule([("a", "[M, K]"), ("b", "[K, N]")], [("y", "[M, N]")])
    assert infer(r, (2, 3), (3, 4)) == [(2, 4)]
    assert infer(r, (None, 3), (None, 4)) == [(None, 4)]
    assert infer(r, None, (3, 4)) == [(None, 4)]
    with pytest.raises(ShapeError, match="dim 0 of b is 5, but K is 3"):
        infer(r, (2, 3), (5, 4))
    with pytest.raises(ShapeError, match=r"a must be of rank 2, but its shape is \[2\]"):
        infer(r, (2,), (3, 4))


def test_runs_of_dims():
    r = rule([("x", "[*B, 3, _]")], [("y", "[*B, 1]")])
    assert infer(r, (7, 5, 3, 9)) == [(7, 5, 1)]
    assert infer(r, (3, None)) == [(1,)]
    assert infer(r, None) == [None]
    with pytest.raises(ShapeError, match="dim 1 of x must be 3"):
        infer(r, (7, 4, 9))
    with pytest.raises(ShapeError, match="rank at least 2"):
        infer(r, (3,))


def test_let_where_and_conditions_on_attributes():
    r = rule(
        [("a", "[A0, A1]")],
        [("y", "[N, 2 * N + 1]")],
        attrs=(AttrDef("flip", "bool"),),
        let={"N": "A1 if flip else A0"},
        where=(("N % 2 == 0", "N must be even, not {N}"),),
    )
    assert infer(r, (4, 6), flip=False) == [(4, 9)]
    assert infer(r, (4, 6), flip=True) == [(6, 13)]
    assert infer(r, (None, 6), flip=False) == [(None, None)]
    with pytest.raises(ShapeError, match="N must be even, not 3"):
        infer(r, (3, 6), flip=False)


def test_results_of_one_attribute_value_are_not_anothers():
    r = rule([("a", "[K]")], [("y", "[K * n]")], attrs=(AttrDef("n", "int"),))
    assert [infer(r, (3,), n=n) for n in (1, 2, 1)] == [[(3,)], [(6,)], [(3,)]]


def test_lists_of_arguments_with_their_index():
    r = rule(
        [("xs", "[B, 2*i + 1]", {"arity": "many", "count": "N"})],
        [("ys", "[B, i]", {"arity": "many", "count": "N + 1"})],
        attrs=(AttrDef("N", "int", inferred=True),),
    )
    assert infer(r, [(4, 1), (4, 3)], N=2) == [(4, 0), (4, 1), (4, 2)]
    with pytest.raises(ShapeError, match="dim 1 of xs must be 3, but it is 1"):
        infer(r, [(4, 1), (4, 1)], N=2)


def test_unknown_values_make_a_check_pass():
    truth = {
        "a == 3 and b == 4": None,
        "b == 5 and a == 3": False,
        "b == 4 or a == 3": True,
        "not a": None,
        "a + 1": None,
        "max(a, 1)": None,
        "7 if b > 3 else a": 7,
    }
    for text, want in truth.items():
        evaluate, _ = compile_expression(text)
        assert evaluate({"a": None, "b": 4}) is want or evaluate({"a": None, "b": 4}) == want, text


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.b",
        "a[0]",
        "lambda: 1",
        "[i for i in a]",
        "f(a)",
        "a if",
        "a / b",
        "len(*a)",
        "a < b < c",
        "1.5",
    ],
)
def test_the_language_is_small(text):
    with pytest.raises(OpSpecError):
        compile_expression(text)


@pytest.mark.parametrize("text", ["M, N", "[M,,N]", "[M"])
def test_patterns_that_are_none(text):
    with pytest.raises(OpSpecError):
        rule([("a", text)], [])


def shapes_like(rng, shape):
    """The shape with random dims unknown."""
    return [None if rng.random() < 0.3 else int(d) for d in shape]


def agrees(static, real):
    return static.rank is None or (
        len(static) == len(real) and all(s in (None, r) for s, r in zip(static.as_list(), real, strict=True))
    )


def test_broadcasting_is_numpys():
    rng = np.random.default_rng(3)
    for _ in range(300):
        a, b = (tuple(rng.integers(1, 4, rng.integers(0, 4))) for _ in range(2))
        try:
            want = np.broadcast_shapes(a, b)
        except ValueError:
            with tf.Graph().as_default(), pytest.raises(ShapeError):
                tf.add(tf.placeholder(tf.float32, a), tf.placeholder(tf.float32, b))
            continue
        with tf.Graph().as_default():
            assert tf.add(tf.placeholder(tf.float32, a), tf.placeholder(tf.float32, b)).shape == list(want)
            loose = tf.add(*(tf.placeholder(tf.float32, shapes_like(rng, s)) for s in (a, b)))
            assert agrees(loose.shape, want)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul_shapes_are_numpys(transpose_a, transpose_b):
    rng = np.random.default_rng(4)
    for _ in range(40):
        m, k, n = rng.integers(1, 5, 3)
        batch_a, batch_b = (tuple(rng.choice([1, 3], rng.integers(0, 3))) for _ in range(2))
        a = np.zeros(batch_a + ((k, m) if transpose_a else (m, k)))
        b = np.zeros(batch_b + ((n, k) if transpose_b else (k, n)))
        want = (np.swapaxes(a, -1, -2) if transpose_a else a) @ (np.swapaxes(b, -1, -2) if transpose_b else b)
        with tf.Graph().as_default():
            x, y = (tf.placeholder(tf.float64, shapes_like(rng, v.shape)) for v in (a, b))
            assert agrees(tf.matmul(x, y, transpose_a, transpose_b).shape, want.shape)
            exact = tf.matmul(
                tf.placeholder(tf.float64, a.shape), tf.placeholder(tf.float64, b.shape), transpose_a, transpose_b
            )
            assert exact.shape == list(want.shape)


def test_known_values_reach_shapes():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 6])
        flat = tf.reshape(x, [-1, tf.shape(x)[1] // 2, 2])
        assert flat.shape.as_list()[1:] == [3, 2]
        rows = tf.shape(x)[0]
        assert tf.zeros([rows, 4]).shape == [None, 4]
        assert tf.reshape(tf.zeros([4, 6]), [tf.constant(8), -1]).shape.as_list()[0] == 8


def test_the_rest_of_a_known_shape_is_known():
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [2, 3, 4]), tf.placeholder(tf.float32, [None, None])
        rest = ops.apply_op("Slice", x=ops.apply_op("Shape", input=x), begin=[1], size=[-1])
        assert tf.reshape(y, rest).shape == [3, 4]


def test_a_rule_goes_with_its_op():
    opdef = OpDef("lab.Gone", summary="A test.", inputs=(ArgDef("x", "float32", shape="[N]"),))
    rule = weakref.ref(rule_for(opdef))
    assert rule() is rule_for(opdef)
    del opdef
    gc.collect()
    assert rule() is None
