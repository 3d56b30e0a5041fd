"""Arguments that are refused before anything is done with them."""

from __future__ import annotations

import pytest
from graphdock.arguments import check_keywords, check_type
from graphdock.errors import ArgumentTypeError, InvalidArgumentError


def test_an_argument_of_another_type_is_named_with_what_was_expected():
    check_type(True, (bool, int), "f: flag", "True or False")
    with pytest.raises(ArgumentTypeError) as caught:
        check_type(list(range(1000)), str, "f: name", "a name")
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)
    assert caught.value.message == "f: name is of the wrong type" and caught.value.expected == "a name"
    assert caught.value.got == "[0, 1, 2, 3, 4, 5, ...]"  # cut, however long it is


def test_the_first_unknown_keyword_is_named_with_the_nearest():
    check_keywords(["a"], (name for name in ("a", "b")), "f")
    with pytest.raises(InvalidArgumentError) as caught:
        check_keywords({"axis": 1, "keepdim": 2, "other": 3}, ("axis", "keepdims"), "reduce")
    assert caught.value.message == "reduce has no argument 'keepdim'"
    assert caught.value.expected == "axis, keepdims" and caught.value.hint == "did you mean 'keepdims'?"
