"""Kinds of resources: what a plugin declares, and the one that the host has itself."""

from __future__ import annotations

import dataclasses

import pytest
from graphdock.contracts import VARIABLE, DeviceInfo, ResourceKind, ResourceRequest, dtypes
from graphdock.contracts.resource import LOCKS
from graphdock.errors import InvalidArgumentError
from graphdock_testing.null import NullDevice


def request(shape, dtype=dtypes.float32):
    attrs = {"dtype": dtype, "shape": shape, "container": "", "shared_name": ""}
    return ResourceRequest("variable", "w", "", attrs, NullDevice(DeviceInfo("null")))


def test_a_kind_is_data_and_is_locked_by_steps_unless_it_says_otherwise():
    kind = ResourceKind("mine", lambda request: [])
    assert (kind.lock, kind.close) == ("step", None)
    assert kind.lock in LOCKS
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind.lock = "own"


def test_an_unknown_lock_policy_is_refused():
    with pytest.raises(InvalidArgumentError, match="'mine' has an unknown lock policy") as caught:
        ResourceKind("mine", lambda request: [], lock="mutex")
    assert (caught.value.expected, caught.value.got) == ("step or own", "mutex")


def test_a_variable_is_a_buffer_of_its_device_once_its_shape_is_known():
    assert VARIABLE.lock == "step"
    assert VARIABLE.create(request((2, 3))).shape == (2, 3)
    assert VARIABLE.create(request((2, None))) is None
    assert VARIABLE.create(request(None)) is None
    assert VARIABLE.create(request(())).shape == ()
