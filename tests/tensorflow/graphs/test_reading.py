"""A graph as a whole: what is wrong is said, what is missing is listed, and a damaged file costs no more than its bytes."""

from __future__ import annotations

import random
import resource
import shutil
import time

import graphdock as tf
import numpy as np
import pytest
from graphdock import messages
from graphdock.errors import GraphdockError, InvalidArgumentError, NotFoundError, UnknownOpError
from graphdock_tensorflow.graphs.files import graph_of

F = tf.float32


@pytest.fixture
def partly(made):
    """``y`` of ``x``, and ``z``, which needs an op that is not here."""
    made.node("x", "Placeholder", dtype=F)
    made.node("y", "Neg", "x", T=F)
    made.node("odd", "NoSuchOp", "y", T=F)
    made.node("z", "Neg", "odd", T=F)
    made.node("after", "NoOp", "^z")
    return made


def test_what_is_missing_is_listed(partly):
    with pytest.raises(
        UnknownOpError, match=r"5 nodes; graphdock lacks\n  NoSuchOp: odd\n  and 2 nodes need one of these"
    ):
        tf.import_graph_def(partly.message)
    report = partly.read().report
    assert report.left_out == {"odd", "z", "after"} and report.ops == {"Neg": 1, "Placeholder": 1}
    assert not report.complete and report.missing[0].nodes == ("odd",)


def test_what_loops_of_tensorflow_keep_is_listed_with_its_reason(made):
    """The gradients of its loops have stacks."""
    made.const("n", np.int32(4))
    made.node("stack", "StackV2", "n", elem_type=F)
    with pytest.raises(UnknownOpError, match="graphdock lacks") as error:
        tf.import_graph_def(made.message)
    assert "StackV2 (what gradients of TensorFlow's loops keep; tf.gradients makes them anew): stack" in str(
        error.value
    )


def test_the_part_that_is_there_computes(partly):
    assert partly.run("y:0", {"x:0": 2.0}, allow_missing=True) == -2
    assert partly.read(outputs=["y:0"]).report.complete
    with pytest.raises(NotFoundError, match="the graph has no node 'yy'") as error:
        partly.read(outputs=["yy"])
    assert "did you mean 'y'" in error.value.hint


def test_what_is_replaced_need_not_be_here(partly):
    with tf.Graph().as_default(), tf.Session() as sess:
        (z,) = tf.import_graph_def(partly.message, {"odd": tf.constant(3.0)}, ["z:0"], allow_missing=True)
        assert sess.run(z) == -3


def test_wrong_graphs_say_what_is_wrong(made):
    made.node("a", "NoOp")
    made.node("a", "NoOp")
    with pytest.raises(InvalidArgumentError, match="two nodes are named 'a'"):
        made.read()
    del made.message.node[1]
    made.node("b", "NoOp", "^c")
    with pytest.raises(NotFoundError, match=r"input '\^c' of node 'b' does not exist"):
        made.read()


def test_a_graph_of_tensorflows_own_class(partly):
    class Foreign:
        def SerializeToString(self):
            return partly.message.SerializeToString()

    with tf.Graph().as_default(), pytest.raises(UnknownOpError, match="NoSuchOp"):
        tf.import_graph_def(Foreign())


def test_what_is_nested_without_end_is_no_message():
    def field(number, data):
        size, out = len(data), bytes([number << 3 | 2])
        while size > 127:
            out, size = out + bytes([size & 127 | 128]), size >> 7
        return out + bytes([size]) + data

    deep = b""
    for _ in range(300):  # a function whose attribute is a function whose attribute...
        deep = field(10, field(2, field(1, b"a") + field(2, deep)))
    with pytest.raises(GraphdockError):
        messages.from_bytes("AttrValue", deep, "it")


# -- damaged files ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a file of each kind, of one program."""
    folder = tmp_path_factory.mktemp("files")
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(F, [None, 2], name="x")
        w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
        _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [tf.constant(0), x])
        table = tf.constant(np.arange(40, dtype=np.float32).reshape(20, 2))
        y = tf.cond(tf.reduce_sum(h) > 0, lambda: h, lambda: h * table[0])
        tf.add_to_collection("outputs", y)
        sess.run(tf.global_variables_initializer())
        tf.train.write_graph(graph, str(folder), "g.pb", as_text=False)
        tf.train.write_graph(graph, str(folder), "g.pbtxt")
        tf.train.Saver().save(sess, str(folder / "m"))
        tf.saved_model.simple_save(sess, str(folder / "saved"), {"x": x}, {"y": y})
    return folder


def as_graph(path):
    message = graph_of(str(path))[1]
    with tf.Graph().as_default():
        tf.import_graph_def(message, name="", allow_missing=True)


def as_meta_graph(path):
    with tf.Graph().as_default():
        tf.train.import_meta_graph(str(path))


def as_saved_model(path):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, ["serve"], str(path.parents[len(path.parts) - 1 - path.parts.index("saved") - 1]))


KINDS = {
    "g.pb": as_graph,
    "g.pbtxt": as_graph,
    "m.meta": as_meta_graph,
    "saved/saved_model.pb": as_saved_model,
    "saved/variables/variables.index": as_saved_model,
}


def mutate(data, rng):
    """Bits flipped, pieces cut, doubled, moved, or numbers made large."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not data:
            break
        at, size = rng.randrange(len(data)), rng.randrange(1, 40)
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + size]
        elif kind == 2:
            data[at:at] = data[at : at + size]
        elif kind == 3:
            data[at : at + size] = bytes([rng.choice((0, 0x7F, 0xFF))]) * size
        elif kind == 4:
            del data[at:]
        else:
            other = rng.randrange(len(data))
            data[at : at + size] = data[other : other + size]
    return bytes(data)


def check(files, kind, seeds, folder):
    shutil.copytree(files, folder / "copy")
    target = folder / "copy" / kind
    original, said = target.read_bytes(), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        target.write_bytes(mutate(original, random.Random(f"{kind} {seed}")))
        begin = time.process_time()
        try:
            KINDS[kind](target)
        except GraphdockError as error:
            said += 1
            assert error.message
        except Exception as error:
            raise AssertionError(f"seed {seed}: no error of graphdock's") from error
        assert time.process_time() - begin < 20, f"seed {seed} takes long"
    assert said, "not one of them was damaged"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # kB


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_clear_errors(files, kind, tmp_path):
    check(files, kind, range(20), tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_damaged_files(files, kind, tmp_path):
    check(files, kind, range(2000), tmp_path)
