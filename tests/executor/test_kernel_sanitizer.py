"""In debug mode a kernel that breaks its contract is named, with the op, the argument and the user's line; on every memory."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, OpDef, Scratch, dtypes
from graphdock.errors import InternalError

PLACES = ("cpu", "chip", "queued")
FLOAT = dtypes.ALL["float32"]


def wide(out, count):
    """``out`` and what lies behind it, as a kernel that counts wrongly sees it."""
    return np.lib.stride_tricks.as_strided(out, (out.size + count,), (out.itemsize,))


def before(out):
    """The element before ``out``, and ``out``."""
    base = out
    while isinstance(base.base, np.ndarray):
        base = base.base
    start = out.ctypes.data - base.ctypes.data - out.itemsize
    return np.ndarray((1,), out.dtype, base, start)


def writes_behind(x, out):
    np.add(x, x, out)
    wide(out, 1)[-1] = 7


def writes_before(x, out):
    np.add(x, x, out)
    before(out)[0] = 7


def writes_its_input(x, *out):
    result = np.add(x, x, *out)
    x += 1
    return result


def returns_its_input(x):
    return x


def returns_part_of_its_input(x):
    return x[:]


def keeps_what_it_returned(x, kept=[]):  # noqa: B006 - the fault
    if not kept:
        kept.append(x + x)
    return kept[0]


def leaves_its_output(x, out=None):
    return x + x


def leaves_the_last_element(x, out=None):
    if out is None:
        return x + x
    out[:-1] = (x + x)[:-1]
    return None


#: body, modes, what the message says
FAULTS = {
    "writes its input, planned": (writes_its_input, ("planned", "fresh"), "changed its input 'x'|read-only"),
    "writes its input, fresh": (writes_its_input, ("fresh",), "changed its input 'x'|read-only"),
    "writes behind its output": (writes_behind, ("planned", "fresh"), "wrote beside its output 'y'"),
    "writes before its output": (writes_before, ("planned", "fresh"), "wrote beside its output 'y'"),
    "returns what it is to write": (leaves_its_output, ("planned", "fresh"), "left elements of its output 'y' as they"),
    "leaves an element": (
        leaves_the_last_element,
        ("planned", "fresh"),
        "left elements of its output 'y' as they were",
    ),
    "returns None": (lambda x: None, ("fresh",), "wrong number of buffers|returned None"),
    "returns another dtype": (lambda x: x.astype(np.float64), ("fresh",), "wrong dtype"),
    "returns another shape": (lambda x: np.concatenate([x, x]), ("fresh",), "wrong shape"),
}


@pytest.mark.parametrize("read_again", [True, False], ids=["read", "fetched"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.sampled(4)
def test_a_dishonest_kernel_is_named(suspects, place, name, read_again):
    body, modes, words = FAULTS[name]
    host = suspects.host_with(suspects.kernel(place, body, modes=modes))
    fetch = (lambda x, outputs: outputs[0] + 1.0) if read_again else None
    with pytest.raises(InternalError, match=words) as caught:
        suspects.run(host, place, [1.0, 4.0, 9.0], debug=True, steps=2, fetch=fetch)
    assert "kernel fault.op of fault.Op" in str(caught.value)
    assert caught.value.op.name == "suspect" and "suspects.py" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (returns_its_input, "memory of an input"),
        (returns_part_of_its_input, "memory of an input"),
        (keeps_what_it_returned, "same buffer again"),
    ],
)
def test_what_is_fresh_is_new(suspects, body, words):
    host = suspects.host_with(suspects.kernel("cpu", body, modes=("fresh",)))
    with pytest.raises(InternalError, match=words):
        suspects.run(host, "cpu", [1.0, 2.0], debug=True, steps=2)


@pytest.mark.parametrize("place", PLACES)
def test_a_kernel_that_corrupts_a_variable_is_named(suspects, place):
    """A read of a variable may be the variable's own memory: a kernel that writes its input changes the variable."""
    host = suspects.host_with(suspects.kernel(place, writes_its_input))
    backends = ("fault", "cpu") if place == "chip" else tuple(dict.fromkeys((place, "fault", "cpu")))
    with tf.Graph(host).as_default() as graph, tf.device(place):
        v = tf.Variable([1.0, 2.0], name="v")
        y = graph.add_op(host.ops.get("fault.Op"), [v.value()], {"T": tf.float32}, "suspect").outputs[0]
        config = tf.SessionConfig(backends=backends, debug=True, fallback="allow")
        with tf.Session(config=config, host=host, graph=graph) as sess:
            sess.run(v.initializer)
            with pytest.raises(InternalError, match="changed its input 'x'"):
                sess.run(y)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("read_again", [True, False], ids=["read", "fetched"])
def test_a_kernel_that_takes_its_output_for_zero_gives_nan(suspects, place, read_again):
    def adds(x, out=None):
        if out is None:
            return x + x
        out += x + x
        return None

    host = suspects.host_with(suspects.kernel(place, adds))
    fetch = (lambda x, outputs: outputs[0] + 1.0) if read_again else None
    assert np.isnan(suspects.run(host, place, [1.0], debug=True, steps=2, fetch=fetch)).all()


@pytest.mark.parametrize("place", PLACES)
def test_a_kernel_that_takes_its_scratch_for_zero_gives_nan(suspects, place):
    def sums(x, out, scratch):
        scratch += x
        np.add(scratch, x, out)

    host = suspects.host_with(suspects.kernel(place, sums, scratch=(Scratch(FLOAT, (2,)),)))
    assert np.isnan(suspects.run(host, place, [1.0, 2.0], debug=True)).all()


@pytest.mark.parametrize("place", PLACES)
def test_a_kernel_that_writes_behind_its_scratch_is_named(suspects, place):
    def sums(x, out, scratch):
        wide(scratch, 1)[-1] = 0
        np.add(x, x, out)

    host = suspects.host_with(suspects.kernel(place, sums, scratch=(Scratch(FLOAT, (3,)),)))
    with pytest.raises(InternalError, match="wrote beside a scratch buffer"):
        suspects.run(host, place, [1.0, 2.0], debug=True)


@pytest.mark.parametrize("place", PLACES)
def test_an_honest_kernel_passes(suspects, place):
    host = suspects.host_with(suspects.kernel(place, np.negative))
    assert suspects.run(host, place, [1.0, 4.0], debug=True, steps=3).tolist() == [-1.0, -4.0]


def test_a_kernel_that_writes_a_strided_input_is_named(suspects):
    host = suspects.host_with(suspects.kernel("cpu", writes_its_input, layout="strided"))
    with tf.Graph(host).as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3])
        turned = tf.transpose(tf.identity(x) + 0.0)
        y = graph.add_op(host.ops.get("fault.Op"), [turned], {"T": tf.float32}, "suspect").outputs[0]
        config = tf.SessionConfig(backends=("fault", "cpu"), debug=True)
        with tf.Session(config=config, host=host, graph=graph) as sess, pytest.raises(InternalError, match="changed"):
            sess.run(y, {x: np.ones((2, 3))})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("access", ["reads", "writes"])
@pytest.mark.sampled(2)
def test_a_kernel_writes_a_variable_only_where_its_op_says_so(suspects, place, access):
    def bump(v, out):
        v += 1
        np.copyto(out, v)

    handle = ArgDef("v", "resource", "[]", access=access)
    op = OpDef("fault.Op", inputs=(handle,), outputs=(ArgDef("y", "float32", "[2]"),), executes="kernel")
    host = suspects.host_with(suspects.kernel(place, bump), op=op)
    backends = ("fault", "cpu") if place == "chip" else tuple(dict.fromkeys((place, "fault", "cpu")))
    config = tf.SessionConfig(backends=backends, debug=True, fallback="allow")
    with tf.Graph(host).as_default() as graph, tf.device(place):
        v = tf.Variable([1.0, 2.0], name="v")
        y = graph.add_op(host.ops.get("fault.Op"), [v.handle], {}, "suspect").outputs[0]
        with tf.Session(config=config, host=host, graph=graph) as sess:
            sess.run(v.initializer)
            if access == "writes":
                assert sess.run(y).tolist() == [2.0, 3.0]
                return
            with pytest.raises(InternalError, match="changed its input 'v'"):
                sess.run(y)
