"""Functions of ``tf.layers`` are made of their classes: what they take, what they say of themselves, what they refuse."""

from __future__ import annotations

import inspect

import graphdock as tf
import pytest

MADE = [
    "average_pooling1d", "average_pooling2d", "average_pooling3d", "conv1d", "conv2d", "conv3d", "conv2d_transpose",
    "conv3d_transpose", "dense", "max_pooling1d", "max_pooling2d", "max_pooling3d", "separable_conv1d", "separable_conv2d",
]  # fmt: skip


def class_of(function):
    return next(getattr(tf.layers, name) for name in dir(tf.layers) if name.lower() == function.replace("_", ""))


@pytest.mark.parametrize("name", MADE)
def test_a_function_takes_the_inputs_and_what_its_class_takes(name):
    function, kind = getattr(tf.layers, name), class_of(name)
    own = inspect.signature(tf.layers.Conv2D if "transpose" in name else kind).parameters.values()
    want = ["inputs", *(p.name for p in own if p.kind is not p.VAR_KEYWORD)]
    want += ["reuse"] if "trainable" in want else []
    assert list(inspect.signature(function).parameters) == [
        w for w in want if (name[6:], w) != ("_transpose", "dilation_rate")
    ]
    assert (function.__name__, function.__module__, function.__doc__) == (name, kind.__module__, kind.__doc__)
    assert inspect.get_annotations(function)["return"] == "_tf.Tensor"


def test_defaults_are_per_spatial_dim():
    defaults = {n: inspect.signature(getattr(tf.layers, n)).parameters["strides"].default for n in MADE if "conv" in n}
    assert set(defaults.values()) == {1, (1, 1), (1, 1, 1)}
    assert all(value == (1 if "1d" in n else (1,) * int(n.partition("conv")[2][0])) for n, value in defaults.items())


def test_a_wrong_call_names_the_function():
    x = tf.zeros([2, 3])
    with pytest.raises(TypeError, match=r"dense\(\) missing a required argument: 'units'"):
        tf.layers.dense(x)
    with pytest.raises(TypeError, match=r"dense\(\) got an unexpected keyword argument 'unts'"):
        tf.layers.dense(x, 3, unts=3)
    with pytest.raises(TypeError, match=r"conv2d_transpose\(\) got an unexpected keyword argument 'dilation_rate'"):
        tf.layers.conv2d_transpose(tf.zeros([1, 4, 4, 1]), 2, 3, dilation_rate=2)
    with pytest.raises(TypeError, match="dtype"):  # the class takes it, the function never did
        tf.layers.dense(x, 3, dtype=tf.float32)


def test_arguments_are_attributes():
    layer = tf.layers.SeparableConv2D(4, 3, depthwise_initializer="ones", activation="relu", bias_constraint=abs)
    assert layer.activation is tf.nn.relu and layer.bias_constraint is abs and layer.use_bias
    assert isinstance(layer.depthwise_initializer, type(tf.initializers.ones()))
    assert layer.kernel is layer.depthwise_kernel is layer.bias is None and layer.pointwise_regularizer is None
