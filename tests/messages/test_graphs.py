"""Fields and numbers of graphs and stats, by bytes that TensorFlow 2.15 wrote."""

from __future__ import annotations

import pytest
from graphdock.messages import AttrValue, GraphDef, RunMetadata


def test_a_graph():
    node = {"name": "n", "op": "O", "input": ["a", "^b"], "device": "d", "attr": {"s": {"s": b"x"}}}
    made = GraphDef(node=[node], versions={"producer": 3, "min_consumer": 2})
    data = b'\n\x1a\n\x01n\x12\x01O\x1a\x01a\x1a\x02^b"\x01d*\x08\n\x01s\x12\x03\x12\x01x"\x04\x08\x03\x10\x02'
    assert made.SerializeToString() == data and GraphDef.FromString(data) == made


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ({"i": 1}, b"\x18\x01"),
        ({"f": 1.5}, b"%\x00\x00\xc0?"),
        ({"b": True}, b"(\x01"),
        ({"type": 3}, b"0\x03"),
        ({"shape": {"dim": [{"size": 1}, {"size": -1}]}}, b":\x11\x12\x02\x08\x01\x12\x0b\x08" + b"\xff" * 9 + b"\x01"),
        ({"tensor": {"dtype": 3, "tensor_shape": {}, "int_val": [3]}}, b"B\x07\x08\x03\x12\x00:\x01\x03"),
        (
            {
                "list": {
                    "s": [b"a"],
                    "i": [1, 2],
                    "f": [1.5],
                    "b": [True],
                    "type": [1, 3],
                    "shape": [{"unknown_rank": True}],
                }
            },
            b'\n\x18\x12\x01a\x1a\x02\x01\x02"\x04\x00\x00\xc0?*\x01\x012\x02\x01\x03:\x02\x18\x01',
        ),
    ],
)
def test_attributes(fields, data):
    made = AttrValue(**fields)
    assert made.SerializeToString() == data and AttrValue.FromString(data) == made


def test_stats():
    node = {
        "node_name": "n",
        "all_start_micros": 1,
        "op_start_rel_micros": 2,
        "op_end_rel_micros": 3,
        "all_end_rel_micros": 4,
        "memory": [{"allocator_name": "a", "total_bytes": 5, "peak_bytes": 6, "live_bytes": 7}],
        "output": [{"slot": 8, "tensor_description": {"dtype": 9, "shape": {"dim": [{"size": 10}]}}}],
        "timeline_label": "l",
    }
    made = RunMetadata(step_stats={"dev_stats": [{"device": "cpu", "node_stats": [node]}]})
    assert made.SerializeToString() == (
        b"\n0\n.\n\x03cpu\x12'\n\x01n\x10\x01\x18\x02 \x03(\x042\t\n\x01a\x10\x05\x18\x06 \x07:\x0c\x08\x08\x1a\x08\x08\t"
        b"\x12\x04\x12\x02\x08\nB\x01l"
    )
