"""The quick bytes of summaries are those that the messages give."""

from __future__ import annotations

import random

import numpy as np
import pytest
from graphdock.errors import DataLossError
from graphdock.messages import Event, Summary
from graphdock_storage.events.summaries import EVENT_KEYS, check, event_bytes, scalar_encoder, tags_of


@pytest.mark.parametrize("tag", [b"", b"loss", "größe".encode(), b"x" * 120, b"y" * 300])
def test_scalars(tag):
    encode = scalar_encoder(tag)
    for number in (0.0, -0.0, 1.5, 1e300, -1e300, float("nan"), 3, np.float16(0.1), 2**80):
        data = encode(number)
        value = Summary.FromString(data).value[0]
        assert value.tag.encode() == tag and value.WhichOneof("value") == "simple_value"
        with np.errstate(over="ignore"):
            assert np.float32(value.simple_value).tobytes() == np.float32(number).tobytes()
        if tag:
            assert Summary.FromString(data).SerializeToString() == data
    assert scalar_encoder(b"loss")(1.5) == b"\n\x0b\n\x04loss\x15\x00\x00\xc0?", "as TensorFlow's ScalarSummary gives"


def test_events():
    for step in (None, 0, 1, 300, 2**40, -1):
        made = event_bytes(1.5e9, step, EVENT_KEYS["summary"], scalar_encoder(b"a")(2))
        event = Event(wall_time=1.5e9, step=step, summary={"value": [{"tag": "a", "simple_value": 2}]})
        assert made == event.SerializeToString()
    assert event_bytes(0.0, 3, EVENT_KEYS[""], b"whole") == b"whole"
    for field, key in EVENT_KEYS.items():
        if field and field not in ("summary", "session_log", "tagged_run_metadata"):
            assert Event.FromString(event_bytes(1.0, None, key, b"xy")) == Event(wall_time=1.0, **{field: b"xy"})
        elif field:
            assert Event.FromString(event_bytes(1.0, None, key, b"")).WhichOneof("what") == field


def test_tags_in_order():
    summary = Summary(value=[{"tag": t, "simple_value": 1} for t in ("a", "", "z" * 200, "a")])
    summary.value.add(tag="image", image={"encoded_image_string": bytes(500)})
    assert tags_of(summary.SerializeToString()) == [b"a", b"", b"z" * 200, b"a", b"image"]
    assert tags_of(b"") == []
    check(summary.SerializeToString())
    # the tag behind the value, as no writer has it and every reader takes it
    assert tags_of(b"\n\x08\x15\0\0\0\0\n\x01a") == [b"a"]


def test_tags_of_damaged_bytes():
    data = Summary(value=[{"tag": "abc", "simple_value": 1}, {"tag": "d", "simple_value": 2}]).SerializeToString()
    rng = random.Random(5)
    for _ in range(500):
        at = rng.randrange(len(data))
        bad = data[:at] + rng.randbytes(rng.randrange(3)) + data[at + rng.randrange(3) :]
        try:
            check(bad)
            tags_of(bad)
        except DataLossError as error:
            assert "no Summary" in str(error)
    for bad in (data[:-1], b"\n\x7f\n\x01a", b"\n", b"\x0a\x02"):
        for look in (check, tags_of):
            with pytest.raises(DataLossError, match="no Summary"):
                look(bad)
