"""What the programs of examples/ train outlives them: as a checkpoint, a meta graph, and a graph on disk of either form.

Each program is trained two steps and saved. Two steps more are then made by three others: a new session of the same graph that
restores the variables; a new graph that is read from the meta graph; and one that is read from a GraphDef, binary or text, whose
own op restores the variables. Their losses and variables are the same, bit for bit, and those of the first session going on, where
the program draws no numbers. Its loss with the variables frozen is the loss without the training.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
import threadpoolctl

from examples import training

text_format = pytest.importorskip("google.protobuf.text_format")
pytestmark = pytest.mark.slow

_NARROW = "--batch 1 --narrow 32 --classes 4"
_LSTM = "--units 8 --text 600 --words 10 --length 4"

#: Program and what tells two runs apart -> options that make it small.
PROGRAMS = {
    "alexnet": _NARROW,
    "overfeat": _NARROW,
    "vgg": _NARROW,
    "googlenet": _NARROW,
    "digits_cnn": "--batch 4 --width 4",
    "mlp": "--batch 4 --hidden 8",
    "dcgan": "--batch 4 --width 4",
    "transformer": "--batch 2 --length 8 --width 8 --heads 2 --vocabulary 8",
    "gpt": "--batch 2 --length 8 --width 8 --heads 2 --write 5",
    "seq2seq": "--length 4 --vocabulary 8 --units 8 --batch 4",
    "tree_lstm": "--depth 2 --units 8 --width 4",
    "sharded_embedding": "--users 8 --things 6 --strategy mod",
    "lstm_lm": f"--layers 2 --keep 0.9 {_LSTM}",
    "lstm_lm sampled": f"--loss sampled --sampled 4 {_LSTM}",
    "word2vec": "--subjects 2 --words 4 --width 4 --text 400 --sampled 4",
}

#: Programs whose steps draw numbers: a session that goes on draws others than one that begins.
DRAW = {"digits_cnn", "mlp", "alexnet", "overfeat", "vgg", "lstm_lm", "lstm_lm sampled", "word2vec"}

#: Convolutional networks of hundreds of nodes, of which one is enough for every day; and what is like another.
LARGE = {"alexnet", "overfeat", "vgg", "googlenet", "digits_cnn", "transformer", "lstm_lm sampled"}


class Seen(Exception):
    """The round trip is made; what the program would do afterwards is left out."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in test_networks."""
    with threadpoolctl.threadpool_limits(1), tf.Graph().as_default():
        yield


def two_steps(sess: Any, fetches: list[Any], feeds: list[dict[str, Any]], names: list[str]) -> list[np.ndarray]:
    """The losses of two steps, and every variable after them."""
    there = {f"{op.name}:0" for op in sess.graph.get_operations()}  # a graph that was cut has not all that is fed
    losses = [sess.run(fetches, {k: v for k, v in feed.items() if k in there})[0] for feed in feeds]
    return [*losses, *sess.run(names)]


def read(path: Path) -> Any:
    """The GraphDef in a file, as TensorFlow 1's users read one."""
    graph_def = tf.GraphDef()
    if path.suffix == ".pb":
        graph_def.ParseFromString(path.read_bytes())
    else:
        text_format.Parse(path.read_text(), graph_def)
    return graph_def


def trip(folder: Path, name: str) -> Callable[..., Any]:
    def train(
        sess: Any,
        options: Any,
        step: Any,
        loss: Any,
        feed: Callable[[int], Mapping[Any, Any]],
        measure: Callable[[], dict[str, float]] = dict,
    ) -> Any:
        feeds = [{tensor.name: value for tensor, value in feed(number).items()} for number in range(4)]
        values = [v.value() for v in tf.global_variables()]
        names = [value.name for value in values]
        saver = tf.train.Saver()
        sess.run(tf.global_variables_initializer())
        two_steps(sess, [loss, step], feeds[:2], names)
        path = saver.save(sess, str(folder / "trained"))
        went_on = two_steps(sess, [loss, step], feeds[2:], names)

        fetches = [loss.name, step.name]
        with tf.Session(graph=sess.graph) as again:
            saver.restore(again, path)
            expected = two_steps(again, fetches, feeds[2:], names)
        with tf.Session(graph=sess.graph) as again:
            saver.restore(again, path)
            frozen = tf.graph_util.convert_variables_to_constants(again, sess.graph_def, [loss.op.name])
            lost = two_steps(again, fetches[:1], feeds[2:], [])
        if name not in DRAW:
            np.testing.assert_equal(went_on, expected)

        with tf.Graph().as_default(), tf.Session() as other:
            tf.train.import_meta_graph(path + ".meta").restore(other, path)
            np.testing.assert_equal(two_steps(other, fetches, feeds[2:], names), expected)

        saved_as = saver.as_saver_def()
        for file in ("graph.pb", "graph.pbtxt"):
            tf.train.write_graph(sess.graph, str(folder), file, as_text=file.endswith("txt"))
            with tf.Graph().as_default(), tf.Session() as other:
                tf.import_graph_def(read(folder / file), name="")
                other.run(saved_as.restore_op_name, {saved_as.filename_tensor_name: path})
                np.testing.assert_equal(two_steps(other, fetches, feeds[2:], names), expected)

        with tf.Graph().as_default(), tf.Session() as other:
            tf.import_graph_def(frozen, name="")
            assert not {op.type for op in other.graph.get_operations()} & {"VarHandleOp", "ReadVariableOp"}
            np.testing.assert_equal(two_steps(other, fetches[:1], feeds[2:], []), lost)
        raise Seen

    return train


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.exhaustive) if n in LARGE else n for n in PROGRAMS])
@pytest.mark.sampled(6)
def test_a_program_goes_on_from_what_was_saved(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = importlib.import_module(f"examples.{name.split()[0]}")
    modules = [module for key, module in sys.modules.items() if key.startswith("examples.")]
    for module in [m for m in modules if getattr(m, "train", None) is training.train]:
        monkeypatch.setattr(module, "train", trip(tmp_path, name))
    with pytest.raises(Seen):
        program.main(["--backend", "cpu", "--steps", "4", *PROGRAMS[name].split()])
