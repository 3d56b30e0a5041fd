"""Reading events back; damaged files stand in tests/storage/events/test_records.py."""

from __future__ import annotations

from types import SimpleNamespace

import graphdock as tf
import pytest
from graphdock.errors import DataLossError, InvalidArgumentError, NotFoundError
from graphdock_storage.records import framed


def test_events_come_one_after_another_while_the_file_grows(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(framed(tf.Event(step=1).SerializeToString()))
    found = tf.train.summary_iterator(str(path))
    assert next(found).step == 1
    with path.open("ab") as file:
        file.write(framed(tf.Event(step=2).SerializeToString()) + framed(b"\xff"))
    assert next(found).step == 2
    with pytest.raises(DataLossError, match="no Event"):
        next(found)
    with pytest.raises(NotFoundError):
        next(tf.train.summary_iterator(str(tmp_path / "none")))


def test_descriptions():
    def node(op, description):
        return SimpleNamespace(op=op, name="n", attr={"description": description})

    describe = tf.summary.get_summary_description
    assert describe(node("TensorSummary", '{"typeHint": "scalar"}')).type_hint == "scalar"
    assert describe(node("TensorSummary", SimpleNamespace(s=b'{"type_hint": "x"}'))).type_hint == "x"
    assert describe(node("TensorSummary", "")) == tf.summary.SummaryDescription()
    with pytest.raises(InvalidArgumentError, match="Can't get_summary_description on ScalarSummary"):
        describe(node("ScalarSummary", ""))
    for wrong in ("{", "[1]", "[" * 100_000, '{"typeHint": 3}'):
        with pytest.raises(InvalidArgumentError, match="no SummaryDescription"):
            describe(node("TensorSummary", wrong))
