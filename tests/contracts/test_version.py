"""Ranges of the contracts' version, as manifests write them."""

from __future__ import annotations

import pytest
from graphdock.contracts.version import API_VERSION, api_accepts
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
