"""The manners of a protocol message, as TensorFlow's ConfigProto has them."""

from __future__ import annotations

import copy

import graphdock as tf
import pytest


def test_it_behaves_as_a_protocol_message():
    config = tf.ConfigProto()
    with pytest.raises(ValueError, match='has no "nope" field'):
        tf.ConfigProto(nope=1)
    with pytest.raises(AttributeError, match='has no "nope" field'):
        config.nope = 1
    with pytest.raises(TypeError, match="'yes' is not an integer"):
        config.allow_soft_placement = "yes"
    with pytest.raises(TypeError, match=r"1\.5 is not an integer"):
        config.intra_op_parallelism_threads = 1.5
    with pytest.raises(AttributeError, match='Assignment not allowed to message field "gpu_options"'):
        config.gpu_options = tf.GPUOptions()
    with pytest.raises(AttributeError, match='repeated field "device_filters"'):
        config.device_filters = []
    assert config == tf.ConfigProto() and not config.HasField("gpu_options")
    config.gpu_options.CopyFrom(tf.GPUOptions(allow_growth=True))
    config.device_filters.append('/job:"ps"')
    config.device_count["GPU"] = 0
    assert config.HasField("gpu_options") and config != tf.ConfigProto()
    assert str(config) == (
        'device_count {\n  key: "GPU"\n  value: 0\n}\ndevice_filters: "/job:\\"ps\\""\ngpu_options {\n  allow_growth: true\n}\n'
    )
    assert copy.copy(config) == config
    other = copy.deepcopy(config)
    other.gpu_options.allow_growth = False
    assert config.gpu_options.allow_growth
    other.MergeFrom(config)
    assert other.device_filters == ['/job:"ps"'] * 2
    other.Clear()
    assert other == tf.ConfigProto()
    with pytest.raises(TypeError, match="expected a GPUOptions, got a GraphOptions"):
        config.gpu_options.CopyFrom(tf.GraphOptions())
    with pytest.raises(ValueError, match="does not have presence"):
        config.HasField("allow_soft_placement")
