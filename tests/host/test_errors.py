"""Errors say what happened, what was expected, where and what to do."""

from __future__ import annotations

import inspect

import pytest
from graphdock import errors
from graphdock.errors import GraphdockError, NotFoundError

CLASSES = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, GraphdockError)]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "no"),
        ({"expected": "1", "got": "2"}, "no\n  expected 1, got 2"),
        ({"expected": "1"}, "no\n  expected 1"),
        ({"got": "2"}, "no\n  got 2"),
        ({"op": "MatMul"}, "no\n  op: MatMul"),
        ({"op": "MatMul", "site": "a.py:3"}, "no\n  op: MatMul, made at a.py:3"),
        ({"site": "a.py:3"}, "no\n  at a.py:3"),
        ({"hint": "try"}, "no\n  hint: try"),
        (
            {"hint": "try", "op": "A", "site": "a.py:1", "got": "2", "expected": "1"},
            "no\n  expected 1, got 2\n  op: A, made at a.py:1\n  hint: try",
        ),
    ],
)
def test_the_text_is_made_of_the_parts(parts, text):
    error = GraphdockError("no", **parts)
    assert error.text == text
    assert str(error) == f"{text}\n  see: graphdock error GD000"
    assert {k: getattr(error, k) for k in parts} == parts and error.message == "no"


def test_a_part_that_is_found_later_is_in_the_text():
    error = GraphdockError("no")
    error.op, error.site = "Add", "b.py:2"
    assert str(error) == "no\n  op: Add, made at b.py:2\n  see: graphdock error GD000"


def test_pythons_own_kinds_catch_what_belongs_to_them():
    kinds = [(ValueError, "InvalidArgumentError"), (TypeError, "DTypeError"), (KeyError, "NotFoundError")]
    kinds += [
        (ValueError, "AlreadyExistsError"),
        (ValueError, "NotFoundError"),
        (RuntimeError, "FailedPreconditionError"),
    ]
    for python, name in kinds:
        assert issubclass(getattr(errors, name), python)
    assert issubclass(errors.GradientError, LookupError)


def test_every_class_is_public_and_says_what_it_is_for():
    for kind in CLASSES:
        assert kind.__name__ in errors.__all__ and inspect.getdoc(kind)


def test_an_error_of_a_spec_begins_with_its_place():
    error = errors.OpSpecError("bad", file="a.yaml", line=3, column=7, hint="mend it")
    assert str(error) == "a.yaml:3:7: bad\n  hint: mend it\n  see: graphdock error GD104"
    assert (error.file, error.line, error.column) == ("a.yaml", 3, 7)


def test_a_missing_device_carries_its_reason():
    error = errors.DeviceUnavailable("no driver", hint="install one")
    assert (error.reason, error.hint) == ("no driver", "install one")


def test_a_name_that_nobody_knows_is_told_with_those_that_are_known():
    error = NotFoundError.unknown("no colour 'rde'", "rde", iter(["red", "blue"]))
    assert type(error) is NotFoundError
    assert (error.message, error.expected, error.hint) == ("no colour 'rde'", "one of red, blue", "did you mean 'red'?")
    assert NotFoundError.unknown("none", "red", ["red"], "ask elsewhere").hint == "ask elsewhere"
    assert NotFoundError.unknown("none", "x", []).text == "none\n  expected one of none"


def test_classes_and_numbers_of_statuses():
    """Numbers are those of TensorFlow; a class that stands for several has the one that is nearest to the base."""
    pairs = {
        errors.UNKNOWN: errors.UnknownError,
        errors.INVALID_ARGUMENT: errors.InvalidArgumentError,
        errors.NOT_FOUND: errors.NotFoundError,
        errors.OUT_OF_RANGE: errors.OutOfRangeError,
        errors.DATA_LOSS: errors.DataLossError,
        errors.UNAVAILABLE: errors.UnavailableError,
    }
    for number, kind in pairs.items():
        assert errors.exception_type_from_error_code(number) is kind
        assert errors.error_code_from_exception_type(kind) == number
    assert errors.error_code_from_exception_type(errors.ShapeError) == errors.INVALID_ARGUMENT
    assert errors.error_code_from_exception_type(OSError) == errors.UNKNOWN
    with pytest.raises(KeyError):
        errors.exception_type_from_error_code(99)
