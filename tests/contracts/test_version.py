"""Ranges of the contracts' version, as manifests write them.

Old names of the contracts: errors that say the new ones.
"""

from __future__ import annotations

import graphdock.contracts as contracts
import pytest
from graphdock.contracts import KernelDef, QueuedDevice, ResourceKind, errors
from graphdock.contracts.version import API_VERSION, NAMES, WORDS, api_accepts
from graphdock.errors import ManifestError


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        (">=0.1,<0.2", [(0, 1)]),
        (">=0.1", [(0, 1), (0, 2), (1, 0), (1, 2)]),
        ("<1", [(0, 0), (0, 1), (0, 2)]),
        (" >= 0.2 , < 1.1 ", [(0, 2), (1, 0)]),
        (">=1", [(1, 0), (1, 2)]),
        (">=0.2,<0.1", []),
    ],
)
def test_a_range_holds_for_the_versions_within(text, accepted):
    versions = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]
    assert [v for v in versions if api_accepts(text, v)] == accepted


@pytest.mark.parametrize("text", ["", "0.1", "==0.1", ">=0.1;<0.2", ">=a", ">=0.1.2", "<=0.1", ">0.1"])
def test_other_texts_are_no_ranges(text):
    with pytest.raises(ManifestError, match="is not a range") as caught:
        api_accepts(text)
    assert ">=" in (caught.value.expected or "")


def test_the_version_of_this_package_is_the_default():
    major, minor = API_VERSION
    assert api_accepts(f">={major}.{minor}") and not api_accepts(f"<{major}.{minor}")


@pytest.mark.parametrize(("old", "new"), NAMES.items())
def test_an_old_name_says_the_new_one(old, new):
    assert hasattr(contracts, new) and old not in contracts.__all__
    with pytest.raises(ImportError, match=f"graphdock.contracts.{old} is called {new} now"):
        getattr(contracts, old)


def test_an_import_of_an_old_name_says_the_new_one():
    with pytest.raises(ImportError, match="graphdock.contracts.HalfWritten is called PartialWriteError now"):
        from graphdock.contracts import HalfWritten  # noqa: F401


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'graphdock.contracts' has no attribute 'Nothing'"):
        contracts.Nothing  # noqa: B018


def test_old_words_in_fields_say_the_new_ones():
    with pytest.raises(errors.InvalidArgumentError) as caught:
        KernelDef("lab.Op", "cpu", build=lambda ctx: None, modes=("fresh", "whole"))
    assert caught.value.hint == f"'whole' is called {WORDS['whole']!r} now"
    with pytest.raises(errors.InvalidArgumentError) as caught:
        ResourceKind("lab.Kind", create=lambda request: None, lock="claim")
    assert caught.value.hint == f"'claim' is called {WORDS['claim']!r} now"


def test_a_device_that_says_lanes_is_told_the_new_name():
    said = "is called stream_slots now"
    with pytest.raises(AttributeError, match=f"Late.lanes {said}"):
        type("Late", (QueuedDevice,), {"lanes": 3})
    kind = type("Late", (QueuedDevice,), {})
    kind.__abstractmethods__ = frozenset()
    late = kind.__new__(kind)
    with pytest.raises(AttributeError, match=f"Late.lanes {said}"):
        late.lanes = 3
    with pytest.raises(AttributeError, match=f"Late.lanes {said}"):
        _ = late.lanes
