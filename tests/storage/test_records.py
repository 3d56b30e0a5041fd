"""Records: their bytes by hand, and files that are damaged."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest
from graphdock.errors import DataLossError, NotFoundError
from graphdock.messages import Event
from graphdock_storage.checkpoint.crc32c import crc32c, masked
from graphdock_storage.records import framed, read_records

#: A record with the five bytes ``hello``, as TensorFlow's TFRecordWriter writes it.
HELLO = bytes.fromhex("0500000000000000eab2043e68656c6c6fbb1f1c19")


def test_a_record_of_tensorflow(tmp_path):
    assert framed(b"hello") == HELLO
    path = tmp_path / "r"
    path.write_bytes(HELLO + framed(b"") + framed(b"x" * 3000))
    assert list(read_records(str(path))) == [b"hello", b"", b"x" * 3000]
    path.write_bytes(b"")
    assert list(read_records(str(path))) == []


def test_damage_is_told_with_its_place(tmp_path):
    path = tmp_path / "r"
    good = framed(b"first")
    for bad, words in (
        (HELLO[:7], "cut off"),
        (HELLO[:-1], "1 are missing"),
        (HELLO[:13], "cut off"),
        (b"\x06" + HELLO[1:], "length"),
        (HELLO[:-5] + b"O" + HELLO[-4:], "does not agree"),
    ):
        path.write_bytes(good + bad)
        found = read_records(str(path))
        assert next(found) == b"first"
        with pytest.raises(DataLossError, match=words) as caught:
            next(found)
        assert f"byte {len(good)}" in str(caught.value) and str(path) in str(caught.value)
    with pytest.raises(NotFoundError, match="nothing"):
        list(read_records(str(tmp_path / "nothing")))


def test_a_length_that_lies_takes_no_memory(tmp_path):
    length = struct.pack("<Q", 1 << 40)
    path = tmp_path / "r"
    path.write_bytes(length + struct.pack("<I", masked(crc32c(length))) + b"short")
    tracemalloc.start()
    with pytest.raises(DataLossError, match="missing"):
        list(read_records(str(path)))
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def events():
    return [Event(wall_time=1.0, file_version="brain.Event:2")] + [
        Event(
            step=i,
            summary={
                "value": [
                    {"tag": f"loss/{i}", "simple_value": i / 3},
                    {"tag": "h", "histo": {"min": -1, "bucket": range(9), "bucket_limit": range(9)}},
                    {"tag": "t", "tensor": {"dtype": 7, "string_val": [b"a"]}, "metadata": {"display_name": "d"}},
                ]
            },
        )
        for i in range(1, 4)
    ]


def mutated(rng, data):
    kind = rng.randrange(5)
    at = rng.randrange(len(data))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
    if kind == 3:
        return data[:at] + data[at + rng.randrange(1, 40) :]
    return data[:at] + data[rng.randrange(len(data)) :]


@pytest.mark.parametrize("count", [60, pytest.param(4000, marks=pytest.mark.exhaustive)])
def test_mutated_files_and_events_give_clear_errors(tmp_path, count):
    """Bytes of files, and of events within good records: what is read is right up to the damage, which is told as such."""
    import graphdock as tf

    rng, path = random.Random(count), tmp_path / "events"
    whole = [event.SerializeToString() for event in events()]
    for n in range(count):
        if n % 2:
            data = b"".join(map(framed, whole))
            path.write_bytes(mutated(rng, data))
        else:
            path.write_bytes(framed(whole[0]) + framed(mutated(rng, whole[1 + n % 3])))
        seen = []
        try:
            for event in tf.train.summary_iterator(str(path)):
                seen.append(event.SerializeToString())
                str(event)
        except DataLossError as error:
            assert str(path) in str(error)
        if n % 2:
            assert seen == whole[: len(seen)] or len(seen) <= len(whole) + 1 and all(s in whole for s in seen)
        else:
            assert seen[0] == whole[0] and len(seen) <= 2
