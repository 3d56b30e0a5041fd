"""Device names: what is read, what is written, how nested scopes merge."""

from __future__ import annotations

import itertools

import pytest
from graphdock.device_name import DeviceSpec
from graphdock.errors import InvalidArgumentError

SPECS = [
    DeviceSpec(job, task, kind, index)
    for job, task, kind, index in itertools.product((None, "ps"), (None, 2), (None, "cpu", "cuda"), (None, 0, 3))
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_what_is_written_is_read_back(spec):
    assert DeviceSpec.parse(str(spec)) == spec
    assert DeviceSpec.parse(spec) is spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("", DeviceSpec()),
        (None, DeviceSpec()),
        ("cpu", DeviceSpec(type="cpu")),
        ("CPU:1", DeviceSpec(type="cpu", index=1)),
        ("/gpu:0", DeviceSpec(type="gpu", index=0)),
        ("/job:worker/replica:0/task:17/device:CUDA:3", DeviceSpec("worker", 17, "cuda", 3)),
        ("/device:*:2", DeviceSpec(index=2)),
        ("/job:*/task:*", DeviceSpec()),
    ],
)
def test_forms_that_are_read(text, spec):
    assert DeviceSpec.parse(text) == spec
    assert bool(spec) is (spec != DeviceSpec())


@pytest.mark.parametrize("text", ["cpu:", "cpu:-1", "/device:", "/job:", "cpu cuda", "/task:x", "//cpu", "/cpu:0:1"])
def test_forms_that_are_no_device_names(text):
    with pytest.raises(InvalidArgumentError, match="is not a device name"):
        DeviceSpec.parse(text)


@pytest.mark.parametrize("name", ["/job:a/job:b", "/cpu:0/gpu:1", "/task:1/task:1"])
def test_a_device_name_says_each_field_once(name):
    with pytest.raises(InvalidArgumentError, match="twice"):
        DeviceSpec.parse(name)


def test_an_inner_device_type_drops_the_outer_index():
    outer = DeviceSpec.parse("/job:worker/device:cuda:3")
    assert str(outer.merge(DeviceSpec.parse("cpu"))) == "/job:worker/device:cpu"
    assert str(outer.merge(DeviceSpec.parse("cuda"))) == "/job:worker/device:cuda:3"
    assert str(outer.merge(DeviceSpec(index=1))) == "/job:worker/device:cuda:1"


def test_what_the_inner_scope_says_holds_and_the_empty_name_changes_nothing():
    for outer, inner in itertools.product(SPECS, repeat=2):
        assert inner.matches(outer.merge(inner)), (outer, inner)
        assert outer.merge(inner).merge(inner) == outer.merge(inner)
    for spec in SPECS:
        assert spec.merge(DeviceSpec()) == spec == DeviceSpec().merge(spec)


def test_a_whole_name_matches_every_part_of_itself():
    whole = DeviceSpec("ps", 2, "cuda", 3)
    for spec in SPECS:
        fields = ("job", "task", "type", "index")
        fits = all(getattr(spec, f) in (None, getattr(whole, f)) for f in fields)
        assert spec.matches(whole) is fits, spec


def test_tables_show_type_and_index():
    assert [s.short() for s in (DeviceSpec("ps", 1, "cpu", 0), DeviceSpec(type="cuda"), DeviceSpec())] == [
        "cpu:0",
        "cuda",
        "*",
    ]
