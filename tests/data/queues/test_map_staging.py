"""Staging areas with keys. Answers are TensorFlow 2.21's, but those of waits, which were worked out by hand."""

from __future__ import annotations

from concurrent.futures import Future

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ResourceRequest, dtypes, errors
from graphdock_data.resources.staging_map import STAGING_MAP

MapStagingArea = tf.contrib.staging.MapStagingArea


@pytest.mark.parametrize("ordered", [True, False])
def test_a_program_as_in_tensorflow(ordered):
    area = MapStagingArea([tf.float32, tf.int32], shapes=[[], []], names=["x", "n"], ordered=ordered)
    k, x, n = (tf.placeholder(d, []) for d in (tf.int64, tf.float32, tf.int32))
    put, px, pn = area.put(k, {"x": x, "n": n}), area.put(k, {"x": x}), area.put(k, {"n": n})
    get, got, peek = area.get(k), area.get(), area.peek(k)
    gx, gn, sizes = area.get(k, ["x"]), area.get(k, ["n"]), [area.size(), area.incomplete_size()]
    assert get[0] is k and got[0].shape == [] and peek["x"].shape == []
    with tf.Session() as s:
        s.run(put, {k: 3, x: 1, n: 2})
        s.run(put, {k: 3, x: 9, n: 9})  # which is dropped
        assert s.run(peek, {k: 3}) == {"x": 1, "n": 2} and s.run(sizes) == [1, 0]
        if ordered:
            s.run(put, {k: 1, x: 4, n: 5})
            assert s.run(got) == (1, {"x": 4, "n": 5}) and s.run(sizes) == [1, 0]
        s.run(px, {k: 7, x: 1})
        assert s.run(sizes) == [1, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="index 0 for key 7 was already initialized"):
            s.run(px, {k: 7, x: 1})
        s.run(pn, {k: 7, n: 1})
        assert s.run(sizes) == [2, 0]
        assert s.run(gx, {k: 7}) == (7, {"x": 1}) and s.run(sizes) == [2, 0]
        for again in (gx, get):
            with pytest.raises(tf.errors.InvalidArgumentError, match="index 0 for key 7 has already been removed"):
                s.run(again, {k: 7})
        assert s.run(gn, {k: 7}) == (7, {"n": 1}) and s.run(sizes) == [1, 0]
        s.run(px, {k: 3, x: 1})
        s.run(pn, {k: 3, n: 1})
        assert s.run(sizes) == [1, 0] and s.run(peek, {k: 3}) == {"x": 1, "n": 2}
        s.run(px, {k: 5, x: 1})
        s.run(area.clear())
        assert s.run(sizes) == [0, 0]


def test_a_step_waits_for_its_key(start):
    area = MapStagingArea([tf.float32], shapes=[[2]], capacity=1, shared_name="parts")
    again = MapStagingArea([tf.float32], shapes=[[2]], capacity=1, shared_name="parts")
    assert (area.capacity, area.memory_limit, area.ordered, area.dtypes) == (1, 0, False, [tf.float32])
    k = tf.placeholder(tf.int64, [])
    put, get = area.put(k, [[1.0, 2.0]], [0]), again.get(k)
    with tf.Session() as s:
        step = start(lambda: s.run(get, {k: 2}))
        s.run(put, {k: 1})
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(put, {k: 2}, options=tf.RunOptions(timeout_in_ms=20))
        s.run(get, {k: 1})
        s.run(put, {k: 2})
        assert step.join().result[1][0].tolist() == [1, 2]
        late = start(lambda: s.run(get, {k: 9}))
    late.join()
    assert isinstance(late.error, tf.errors.CancelledError | RuntimeError)


def test_what_cannot_be():
    area, named = MapStagingArea([tf.float32, tf.int32], shapes=[[2], []]), MapStagingArea([tf.int32], names=["x"])
    x, refused = tf.constant([1.0, 2.0]), tf.errors.InvalidArgumentError
    for error, match, call in (
        (refused, "Indices must be supplied", lambda: area.put(1, [x])),
        (refused, "Number of indices 2", lambda: area.put(1, [x], [0, 1])),
        (ValueError, "incompatible", lambda: area.put(1, [tf.zeros([3])], [0])),
        (TypeError, "expected float32", lambda: area.put(1, [tf.constant([1, 2])], [0])),
        (TypeError, "expected int64", lambda: area.put(tf.constant(1), [x], [0])),
        (refused, "must have names", lambda: area.put(1, {"x": x})),
        (refused, "must enqueue a dictionary", lambda: named.put(1, [3], [0])),
        (refused, "got y", lambda: named.put(1, {"y": 3})),
        (refused, "no such names", lambda: area.get(1, ["x"])),
        (refused, "above the one before", lambda: area.get(1, [])),
        (refused, "above the one before", lambda: area.get(1, [1, 0])),
        (refused, "0 to 1", lambda: area.peek(1, [5])),
        (TypeError, "list of places", lambda: area.get(1, 3)),
        (TypeError, "Mixed types", lambda: named.get(1, [0, "x"])),
        (refused, "shapes must be the same length", lambda: MapStagingArea([tf.int32], shapes=[[], []])),
        (refused, "names must be the same length", lambda: MapStagingArea([tf.int32], names=["a", "b"])),
        (TypeError, "shared_name", lambda: MapStagingArea([tf.int32], shared_name=3)),
    ):
        with pytest.raises(error, match=match):
            call()


# -- as resources -----------------------------------------------------------------------------------------------------------


def make(**attrs):
    attrs = {
        "component_types": (dtypes.int64,) * 2,
        "shapes": (),
        "ordered": True,
        "capacity": 0,
        "memory_limit": 0,
    } | attrs
    return STAGING_MAP.create(ResourceRequest("data.StagingMap", "m", "", attrs, None))


def put(area, key, *values, at=(0, 1)):
    return area.put(at, np.array(key), *(np.array(v, np.int64) for v in values))


def waits(result):
    return isinstance(result, Future) and not result.done()


def test_each_wait_ends_as_soon_as_it_can():
    area = make(capacity=1)
    five, three, anything = (area.get((0, 1), np.array(5)), area.get((0, 1), np.array(3)), area.get_any((0, 1)))
    assert put(area, 3, 1, 2) is None and waits(five) and [v.item() for v in three.result(0)] == [1, 2]
    assert waits(anything) and put(area, 4, 1, at=(0,)) is None and area.incomplete_size() == 1
    assert put(area, 4, 2, at=(1,)) is None and [v.item() for v in anything.result(0)] == [4, 1, 2]
    assert put(area, 6, 1, 2) is None
    late = put(area, 5, 3, 4)
    assert waits(late) and put(area, 7, 1, at=(0,)) is None and area.get((0,), np.array(6)).item() == 1 and waits(late)
    with pytest.raises(errors.InvalidArgumentError, match="index 0 for key 6"):
        area.get_any((0, 1))
    other = area.get((0,), np.array(5))
    assert area.get((1,), np.array(6)).item() == 2 and late.result(0) is None
    assert [v.item() for v in five.result(0)] == [3, 4] and waits(other) and other.cancel()
    assert put(area, 5, 1, 2) is None and area.size() == 1


def test_bytes_count_until_they_are_taken():
    area = make(memory_limit=32)
    with pytest.raises(errors.ResourceExhaustedError, match="32 bytes"):
        put(area, 1, [1, 2, 3], [4, 5])
    for key in (1, 1):  # the second is dropped, and counts for nothing
        assert put(area, key, 1, 2) is None
    assert put(area, 2, 1, at=(0,)) is None and put(area, 3, 1, at=(0,)) is None
    late = put(area, 4, 1, at=(0,))
    assert waits(late) and area.peek((0,), np.array(1)).item() == 1 and waits(late)
    area.get((1,), np.array(1))
    assert late.result(0) is None
    blocked = put(area, 5, 1, 2)
    assert waits(blocked)
    area.clear()
    assert blocked.result(0) is None and area.size() == 1 and area.incomplete_size() == 0


def test_who_waits_is_woken_when_it_ends():
    area = make(shapes=((2,), ()))
    with pytest.raises(errors.InvalidArgumentError, match="component 0"):
        put(area, 1, [1, 2, 3], 1)
    wait = area.peek((0,), np.array(1))
    assert "something to take" in area.oldest_wait()[1] and "0 elements" in area.oldest_wait()[1]
    STAGING_MAP.close(area, None)
    with pytest.raises(errors.CancelledError):
        wait.result(0)
