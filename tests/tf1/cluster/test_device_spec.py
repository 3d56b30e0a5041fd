"""``tf.DeviceSpec`` as TensorFlow's: what it prints was taken from there."""

from __future__ import annotations

import graphdock as tf
import pytest


def test_parts_and_names():
    spec = tf.DeviceSpec(job="ps", device_type="gpu", device_index=3)
    assert spec.to_string() == "/job:ps/device:GPU:3" and spec.device_type == "GPU"
    assert repr(spec) == "<DeviceSpec(job=ps, replica=None, task=None, device_type=GPU, device_index=3)>"
    assert (
        tf.DeviceSpec.from_string("/job:w/replica:1/task:2/cpu:0").to_string() == "/job:w/replica:1/task:2/device:CPU:0"
    )
    assert tf.DeviceSpec(job="a", task=0, device_type="GPU").to_string() == "/job:a/task:0/device:GPU:*"
    assert tf.DeviceSpec().to_string() == "" and tf.DeviceSpec.from_string("") == tf.DeviceSpec()


def test_merging():
    spec = tf.DeviceSpec(job="ps", device_type="gpu", device_index=3)
    other = tf.DeviceSpec.from_string("/gpu:1")
    other.merge_from(tf.DeviceSpec(job="a", device_type="CPU"))
    assert other.to_string() == "/job:a/device:CPU:1"
    assert other.make_merged_spec(spec).to_string() == "/job:ps/device:GPU:3"
    assert spec.replace(task=5).to_string() == "/job:ps/task:5/device:GPU:3"
    spec.job = "x"
    assert (
        spec == tf.DeviceSpec("x", None, None, "GPU", 3) and len({spec, tf.DeviceSpec("x", None, None, "GPU", 3)}) == 1
    )


@pytest.mark.parametrize("name", ["/gpu:x", "/", "/job:a b", "//"])
def test_what_is_no_name(name):
    with pytest.raises(ValueError, match="device"):
        tf.DeviceSpec.from_string(name)


def test_scopes_take_them_and_functions_read_what_inner_scopes_ask():
    """TensorFlow applies the innermost first; what a function returns takes the place of what it read."""
    seen = []

    def function(op):
        seen.append(op.device)
        return "/job:ps"

    with tf.device(function), tf.device("/cpu:0"):
        a = tf.constant(1.0)
    with tf.device("/job:x/task:3/cpu:0"), tf.device(function):
        b = tf.constant(1.0)
        with tf.device(tf.DeviceSpec(task=2)):
            c = tf.constant(1.0)
    assert [t.op.device for t in (a, b, c)] == ["/job:ps", "/job:ps/task:3/device:CPU:0", "/job:ps/task:3/device:CPU:0"]
    assert seen == ["/device:CPU:0", "", "/task:2"]
