"""A kernel that raises: the user sees the node, the kernel, the own line, and the kernel's own traceback behind it."""

import pickle

import graphdock as tf
import pytest
from graphdock import ops
from graphdock.errors import InternalError, InvalidArgumentError, ResourceExhaustedError


def _raise(error):
    raise error


def _in_compute(ctx):
    return lambda *buffers: _raise(KeyError("boom"))


def _in_build(ctx):
    raise KeyError("boom")


def _refuse(ctx):
    raise InvalidArgumentError("not this one")


def _too_large(ctx):
    return lambda *buffers: _raise(MemoryError("no 5 PiB"))


@pytest.fixture(scope="module")
def pinned():
    kinds = {"in_compute": _in_compute, "in_build": _in_build, "refuses": _refuse, "too_large": _too_large}
    for name, build in kinds.items():
        ops.RegisterKernel("Softsign", device="cpu", name=f"{name}_of_test", label="test of errors")(build)

    def session(name):
        return tf.Session(config=tf.SessionConfig(kernels={"Softsign@cpu": f"user.{name}_of_test"}))

    return session


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("name", "words"), [("in_compute", "failed"), ("in_build", "could not be built")])
def test_another_error_becomes_one_that_names_the_node(pinned, name, words, constant):
    with tf.Graph().as_default(), pinned(name) as session:
        x = tf.constant([1.0]) if constant else tf.placeholder(tf.float32, [1])
        y = tf.nn.softsign(x, name="mine")
        with pytest.raises(InternalError) as info:
            session.run(y, None if constant else {x: [1.0]})
    assert info.value.message == f"kernel user.{name}_of_test of Softsign {words}: KeyError: 'boom'"
    assert info.value.op_name == "mine" and "test_kernel_errors.py:" in info.value.site
    assert isinstance(info.value, KeyError) and type(info.value).__name__ == "InternalError"
    assert isinstance(info.value.__cause__, KeyError) and info.value.__cause__.__traceback__ is not None
    info.value.op = info.value.op_name  # an Operation is of its graph
    sent = pickle.loads(pickle.dumps(info.value))
    assert type(sent) is InternalError and str(sent) == str(info.value)


def test_an_error_of_graphdocks_own_gets_the_node(pinned):
    with tf.Graph().as_default(), pinned("refuses") as session:
        x = tf.placeholder(tf.float32, [1])
        with pytest.raises(InvalidArgumentError, match="not this one") as info:
            session.run(tf.nn.softsign(x, name="mine"), {x: [1.0]})
    assert info.value.op_name == "mine" and info.value.__cause__ is None


def test_a_kernel_that_finds_no_memory_is_no_fault_of_graphdocks(pinned):
    with tf.Graph().as_default(), pinned("too_large") as session:
        y = tf.nn.softsign(tf.placeholder(tf.float32, [1], name="x"), name="soft")
        with pytest.raises(ResourceExhaustedError, match="found no memory: no 5 PiB") as caught:
            session.run(y, {"x:0": [1.0]})
    assert caught.value.op_name == "soft" and "test_kernel_errors.py" in caught.value.site
