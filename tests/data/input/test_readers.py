"""Readers in graphs, fed by producers. What records they find is tested in tests/data/resources/test_reader.py."""

from __future__ import annotations

import graphdock as tf
import pytest


def drain(session, fetches):
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            found.append(session.run(fetches))
    return found


@pytest.fixture
def names(tmp_path):
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    (tmp_path / "b").write_bytes(b"three\n")
    return [str(tmp_path / n) for n in "ab"]


def queue_of(session, names):
    queue = tf.FIFOQueue(10, tf.string, shapes=[[]])
    session.run(queue.enqueue_many([names]))
    session.run(queue.close())
    return queue


def test_lines_of_files(names):
    with tf.Session() as session:
        queue, reader = queue_of(session, names), tf.TextLineReader()
        key, value = reader.read(queue)
        assert key.shape == value.shape == [] and not reader.supports_serialize
        found = drain(session, [key, value])
        assert found == [
            [f"{names[0]}:1".encode(), b"one"],
            [f"{names[0]}:2".encode(), b"two"],
            [f"{names[1]}:1".encode(), b"three"],
        ]
        assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [3, 2]
        session.run(reader.reset())
        assert session.run(reader.num_records_produced()) == 0


def test_the_other_readers(names, tmp_path):
    with tf.python_io.TFRecordWriter(str(tmp_path / "r"), "GZIP") as writer:
        writer.write(b"record")
    with tf.Session() as session:
        whole = tf.WholeFileReader().read(queue_of(session, names[1:]))
        assert session.run(whole) == (names[1].encode(), b"three\n")
        fixed = tf.FixedLengthRecordReader(3, footer_bytes=1).read_up_to(queue_of(session, names[:1]), 9)
        keys, values = session.run(fixed)
        assert values.tolist() == [b"one", b"\ntw"] and keys[1] == f"{names[0]}:1".encode()
        records = tf.TFRecordReader(options="GZIP").read(queue_of(session, [str(tmp_path / "r")]))
        assert session.run(records)[1] == b"record"
        reader = tf.IdentityReader()
        work = reader.read(queue_of(session, ["x", "y"]))
        assert session.run(work) == (b"x", b"x")
        state = session.run(reader.serialize_state())
        session.run(work)
        session.run(reader.restore_state(state))
        assert session.run(reader.num_records_produced()) == 1
        for strange in (b"", b"{}", b"[1, 2]", b"[" * 100_000):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse state"):
                session.run(reader.restore_state(strange))


def test_what_is_wrong_with_a_file_is_told(names, tmp_path):
    (tmp_path / "bad").write_bytes(b"\1" * 40)
    with tf.Session() as session:
        records = tf.TFRecordReader().read(queue_of(session, [str(tmp_path / "bad")]))
        with pytest.raises(tf.errors.DataLossError, match="byte 0 of .*bad.*checksum"):
            session.run(records)
        missing = tf.TextLineReader().read(queue_of(session, ["nowhere"]))
        with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
            session.run(missing)
        with pytest.raises(tf.errors.UnimplementedError, match="state"):
            session.run(tf.WholeFileReader().serialize_state())


def test_a_pipeline_from_files_to_batches(names):
    """What a TensorFlow-1 program does: names, reader, decoding, batches."""
    queue = tf.train.string_input_producer(names, num_epochs=2, shuffle=False)
    _, line = tf.TextLineReader().read(queue)
    length = tf.strings.length(line)
    length.set_shape([])
    batch = tf.train.batch([length, line], 2, num_threads=2, allow_smaller_final_batch=True)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        found = drain(session, batch)
        coord.request_stop()
        coord.join(threads)
    lines = sorted(line for _, lines in found for line in lines)
    assert lines == sorted([b"one", b"two", b"three"] * 2)
    assert sorted(n for lengths, _ in found for n in lengths) == sorted([3, 3, 5] * 2)
