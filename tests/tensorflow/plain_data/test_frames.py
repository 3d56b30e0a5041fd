"""Graphs in frames: a text on one line, whose large constants stand beside it under digests of what they hold."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DataLossError, InvalidArgumentError, NotFoundError
from graphdock_tensorflow.plain_data.frames import LARGE, digest_of


def graph_of(*constants):
    graph = tf.Graph()
    with graph.as_default():
        for value in constants:
            tf.constant(value)
        tf.while_loop(
            lambda i: i < 3, lambda i: i + tf.constant(np.ones(LARGE, np.int64))[0], [tf.constant(0, tf.int64)]
        )
    return graph


def imported(value):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(value, name="")
    return graph


def test_a_graph_comes_back_as_it_was():
    graph = graph_of(np.ones(LARGE // 8), np.ones(LARGE // 8 + 1), np.array([b"x" * LARGE * 2]), np.float16(np.nan))
    text, arrays = graph.as_graph_def(form="frames")
    assert imported((text, arrays)).to_json() == graph.to_json()
    assert "\n" not in text and len(text) < len(graph.to_json())
    # the one that is too long, and the one in the loop
    assert sorted(a.nbytes for a in arrays.values()) == [LARGE + 8, 8 * LARGE]


def test_the_same_constant_stands_there_once_and_others_of_its_bytes_do_not_hide_behind_it():
    one = np.zeros([16, 32], np.float32)
    _, arrays = graph_of(one, one.copy(), one.T, one.view(np.int32)).as_graph_def(form="frames")
    assert sorted((a.dtype.name, a.shape) for a in arrays.values()) == [
        ("float32", (16, 32)),
        ("float32", (32, 16)),
        ("int32", (16, 32)),
        ("int64", (LARGE,)),
    ]
    assert all(digest_of(array) == digest for digest, array in arrays.items())


def test_damage_is_refused():
    text, arrays = graph_of(np.arange(1000.0)).as_graph_def(form="frames")
    digest = next(d for d, a in arrays.items() if a.dtype == float)
    damaged = arrays[digest].copy()
    damaged[7] += 1
    with pytest.raises(DataLossError, match=digest):
        imported((text, {**arrays, digest: damaged}))
    with pytest.raises(DataLossError, match=digest):
        imported((text, {**arrays, digest: arrays[digest].reshape(10, 100)}))
    with pytest.raises(DataLossError, match=digest):
        imported((text, {**arrays, digest: np.array([None])}))
    for lacking in ({}, {digest: [1.0]}):
        with pytest.raises(InvalidArgumentError, match="a constant is not beside the graph") as caught:
            imported((text, lacking))
        assert caught.value.got is not None
    data = json.loads(text)
    for bad in (None, 3, {"digest": None}, {"digest": [digest]}, {"digest": {}}):
        next(n for n in data["nodes"] if n["op"] == "Const")["attrs"]["value"] = {"tensor": bad}
        with pytest.raises(InvalidArgumentError):
            imported((json.dumps(data), arrays))


def test_what_it_does_not_hold_is_refused():
    with tf.Graph().as_default() as graph:
        tf.py_func(lambda: 1.0, [], tf.float32)
    with pytest.raises(InvalidArgumentError, match="Python function"):
        graph.as_graph_def(form="frames")
    with tf.Graph().as_default() as graph, pytest.raises(NotFoundError, match="has no node 'x'"):
        graph.host.graph_formats.find("frames").read(("{}", {}), graph.host.ops, outputs=["x"])
