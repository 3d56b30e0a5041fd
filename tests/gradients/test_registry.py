"""Which function an operation's gradient comes from: the override, the user's registration, the spec."""

from __future__ import annotations

import logging

import graphdock as tf
import pytest
from graphdock.errors import AlreadyExistsError, GradientError
from graphdock.gradients import registry
from graphdock.gradients.registry import gradient_of


@pytest.fixture(autouse=True)
def clean():
    state = registry.snapshot()
    with tf.Graph().as_default() as graph:
        yield graph
    registry.restore(state)


def square(name="x"):
    return tf.square(tf.placeholder(tf.float32, [], name=name)).op


def test_the_specs_formula_is_the_default():
    found = gradient_of(square())
    assert found.label.endswith("gradients:square") and not found.by_user and found.missing is None


def test_a_users_function_comes_before_the_spec_and_is_announced_once(caplog):
    @tf.RegisterGradient("Square")
    def mine(op, grad):
        return 3.0 * grad

    with caplog.at_level(logging.INFO, "graphdock"):
        found = [gradient_of(square()) for _ in range(3)]
    assert all(f.function is mine and f.by_user for f in found)
    assert len([r for r in caplog.records if "registered by the user" in r.getMessage()]) == 1


def test_an_override_comes_before_both(clean):
    @tf.RegisterGradient("Square")
    def general(op, grad):
        return grad

    @tf.RegisterGradient("Mine")
    def special(op, grad):
        return 2.0 * grad

    with clean.gradient_override_map({"Square": "Mine"}):
        inside = square()
    assert gradient_of(inside).function is special and gradient_of(square()).function is general


def test_an_override_that_nobody_registered_suggests_the_nearest(clean):
    tf.RegisterGradient("Mine")(lambda op, grad: grad)
    with clean.gradient_override_map({"Square": "Mien"}):
        op = square()
    with pytest.raises(GradientError, match="'Mien', which is not registered") as caught:
        gradient_of(op)
    assert caught.value.hint == "did you mean 'Mine'?" and caught.value.op_name == op.name


def test_a_name_is_registered_once():
    def f(op, grad):
        return grad

    tf.RegisterGradient("Mine")(f)
    with pytest.raises(AlreadyExistsError, match="of 'Mine' is registered already: .*f at ") as caught:
        tf.NotDifferentiable("Mine")
    assert "gradient_override_map" in caught.value.hint


def test_what_has_no_derivative_says_so():
    tf.NotDifferentiable("Square")
    found = gradient_of(square())
    assert found.function is None and found.missing is None and found.label == "NotDifferentiable"
    assert tf.NoGradient is tf.NotDifferentiable
    assert gradient_of(tf.shape(tf.placeholder(tf.float32)).op).function is None


def test_it_takes_the_name_of_an_op_type():
    with pytest.raises(TypeError, match="takes the name of an op type"):
        tf.RegisterGradient(square)


def test_a_snapshot_is_put_back():
    state = registry.snapshot()
    tf.RegisterGradient("Mine")(lambda op, grad: grad)
    assert registry.snapshot() != state
    registry.restore(state)
    assert registry.snapshot() == state
    tf.RegisterGradient("Mine")(lambda op, grad: grad)
