"""Margins around buffers: where they lie, what breaks them, and that nobody pays for them outside of debug mode."""

from __future__ import annotations

import gc
import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.planning.pool import HostMemory
from graphdock_executor.canaries import POISON, Canaries, margin_of
from graphdock_executor.storage import Root, pack

FLOAT = dtypes.ALL["float32"]


def packed(*shapes):
    """Buffers of these shapes as an instance in debug mode has them."""
    device, canaries = HostMemory(), Canaries()
    roots = [Root("planned", "host", FLOAT, shape, 0, 1, f"b{i}") for i, shape in enumerate(shapes)]
    margin = margin_of(device)
    storage = device.allocate(pack(roots, device.alignment, margin))
    buffers = [device.view(storage, r.offset, r.dtype, r.shape) for r in roots]
    for root, buffer in zip(roots, buffers, strict=True):
        canaries.add(device, storage, root, buffer)
    return canaries, storage, roots, buffers


def test_margins_of_buffers_that_live_together_share_no_byte():
    _, storage, roots, _ = packed((3,), (5, 2), (1,))
    margin = margin_of(HostMemory())
    taken = np.zeros(storage.nbytes, int)
    for root in roots:
        assert root.offset % 64 == 0
        taken[root.offset - margin : root.offset + root.nbytes + margin] += 1
    assert taken.max() == 1


def test_a_buffer_is_poisoned_and_its_neighbours_are_not():
    canaries, _, _, (a, b) = packed((3,), (3,))
    a[...] = b[...] = 1.0
    canaries.of(a).set()
    assert np.isnan(a).all() and b.tolist() == [1.0, 1.0, 1.0]
    assert a.view(np.uint8)[0] == POISON


@pytest.mark.parametrize(
    ("at", "words"), [(12, "1 bytes behind"), (20, "9 bytes behind"), (-1, "1 bytes before"), (-64, "64 bytes before")]
)
def test_a_byte_beside_the_buffer_is_seen(at, words):
    canaries, storage, (root,), (buffer,) = packed((3,))
    canary = canaries.of(buffer)
    canary.set()
    assert canary.broken() is None
    buffer[...] = 3.0
    assert canary.broken() is None
    storage[root.offset + at] += 1
    assert words in canary.broken()


def test_a_buffer_of_one_step_is_not_held_by_its_canary():
    device, canaries = HostMemory(), Canaries()
    make = canaries.maker(device, device.allocate, Root("escape", "host", FLOAT, (4,), name="e1"))
    buffer = make()
    gone = weakref.ref(buffer)
    assert canaries.of(buffer) is not None and canaries.of(buffer) is None
    del buffer
    gc.collect()
    assert gone() is None


def test_another_array_over_the_same_bytes_has_no_canary():
    canaries, _, _, (buffer,) = packed((3,))
    assert canaries.of(buffer[:]) is None


def test_margins_do_not_count_as_memory_of_a_plan():
    x = tf.placeholder(tf.float32, [5])
    y = tf.sin(tf.exp(x)) * 2.0
    sizes = []
    for debug in (False, True):
        with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
            metadata = tf.RunMetadata()
            result = sess.run(y, {x: np.zeros(5)}, run_metadata=metadata)
            sizes.append(metadata.plan.arena_bytes)
    assert sizes[0] == sizes[1] and result.flags.writeable


def test_a_device_that_keeps_nothing_has_no_canaries():
    """The null device, for tests of plans: what is read there says nothing of its kernels."""
    from graphdock.plugin.host import Host
    from graphdock_testing import null

    host = Host()
    null.install(host)
    x = tf.placeholder(tf.float32, [3])
    with tf.Session(config=tf.SessionConfig(backends=("null",), debug=True), host=host) as sess:
        assert sess.run(tf.exp(x) + 1.0, {x: np.ones(3)}).tolist() == [0.0, 0.0, 0.0]
