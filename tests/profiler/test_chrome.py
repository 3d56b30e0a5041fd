"""Traces for Perfetto: valid by the format's rules, on tracks that do not overlap, and true to the events."""

from __future__ import annotations

import json

import graphdock as tf
import jsonschema
import numpy as np
import pytest
from graphdock.contracts import TraceEvent
from graphdock_profiler import Profile, profile
from graphdock_profiler.chrome import chrome_trace

#: What "Trace Event Format" of the Chromium project asks of complete (X) and metadata (M) events.
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    {
                        "type": "object",
                        "required": ["ph", "name", "cat", "ts", "dur", "pid", "tid"],
                        "properties": {
                            "ph": {"const": "X"},
                            "name": {"type": "string", "minLength": 1},
                            "cat": {"type": "string", "minLength": 1},
                            "ts": {"type": "number", "minimum": 0},
                            "dur": {"type": "number", "minimum": 0},
                            "pid": {"type": "integer"},
                            "tid": {"type": "integer"},
                            "args": {"type": "object"},
                        },
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "required": ["ph", "name", "pid", "args"],
                        "properties": {
                            "ph": {"const": "M"},
                            "name": {"enum": ["process_name", "thread_name", "thread_sort_index"]},
                            "pid": {"type": "integer"},
                            "tid": {"type": "integer"},
                            "args": {"type": "object", "minProperties": 1},
                        },
                        "additionalProperties": False,
                    },
                ]
            },
        },
    },
}


def slices(trace):
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


def test_times_are_microseconds_since_the_first_step():
    events = [TraceEvent("a", "cpu:0", 10.5, 0.25, "kernel", "MatMul", "cpu.mat_mul", 12)]
    trace = chrome_trace([(10.0, 1.0, events), (12.0, 0.5, [])])
    jsonschema.validate(trace, SCHEMA)
    assert [(e["name"], e["cat"], e["ts"], e["dur"], e["args"]) for e in slices(trace)] == [
        ("step 0", "step", 0, 1e6, {}),
        ("a", "MatMul", 5e5, 2.5e5, {"kind": "kernel", "kernel": "cpu.mat_mul", "bytes": 12}),
        ("step 1", "step", 2e6, 5e5, {}),
    ]


def test_each_device_has_a_track_of_its_name():
    events = [TraceEvent(d, d, 1.0, 0.1) for d in ("cpu:0", "queued:0", "cpu:0")]
    trace = chrome_trace([(1.0, 1.0, events)])
    tracks = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert list(tracks.values()) == ["step", "cpu:0", "queued:0"]
    assert all(e["name"] == tracks[e["tid"]] or e["cat"] == "step" for e in slices(trace))


def test_a_real_profile_keeps_to_the_format_and_nothing_overlaps_on_a_track():
    x = tf.placeholder(tf.float32, [16, 16])
    _, y = tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, x))), [0, x])
    with tf.Session() as sess:
        trace = profile(sess, y, {x: np.ones((16, 16))}, steps=3).chrome()
    trace = json.loads(json.dumps(trace))
    jsonschema.validate(trace, SCHEMA)
    for track in {e["tid"] for e in slices(trace)}:
        last = -1.0
        for event in sorted((e for e in slices(trace) if e["tid"] == track), key=lambda e: e["ts"]):
            assert event["ts"] >= last - 0.002  # rounded to nanoseconds
            last = event["ts"] + event["dur"]
    assert sum(e["cat"] == "Tanh" for e in slices(trace)) == 3 * 5


def test_a_step_whose_plan_was_made_for_it_has_the_stages_of_planning_before_it():
    x = tf.placeholder(tf.float32, [4])
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as sess:
        y = tf.sin(x)
        made = [tf.RunMetadata(), tf.RunMetadata()]
        for metadata in made:
            sess.run(y, {x: np.ones(4)}, options=options, run_metadata=metadata)
    trace = Profile(made).chrome()
    jsonschema.validate(trace, SCHEMA)
    assert [e.name for e in made[0].events if e.kind == "compile"] == [s.name for s in made[0].plan.stages]
    assert not any(e.kind == "compile" for e in made[1].events)
    stages = [e for e in slices(trace) if e["cat"] == "compile"]
    assert [e["name"] for e in stages] == [s.name for s in made[0].plan.stages]
    assert sum(e["dur"] for e in stages) == pytest.approx(sum(s.ms for s in made[0].plan.stages) * 1e3, abs=0.1)
    (first, second) = [e for e in slices(trace) if e["cat"] == "step"]
    assert stages[0]["ts"] == 0 and stages[-1]["ts"] + stages[-1]["dur"] == pytest.approx(first["ts"], abs=0.1)
    assert second["ts"] > first["ts"]


def test_an_empty_profile_is_a_valid_file():
    trace = chrome_trace([])
    jsonschema.validate(trace, SCHEMA)
    assert slices(trace) == []
