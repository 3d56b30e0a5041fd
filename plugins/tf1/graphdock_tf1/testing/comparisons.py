"""Assertions on arrays, which tensors are evaluated for: the part of ``tf.test.TestCase`` that needs no session of its own."""

from __future__ import annotations

import math
import unittest
from collections.abc import Iterable, Mapping
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes, messages

#: Floating dtypes whose NaNs :meth:`Comparisons.assertAllEqual` takes for equal.
_FLOATING = (np.float16, np.float32, np.float64, dtypes.bfloat16.as_numpy_dtype)


class Comparisons(unittest.TestCase):
    """Comparisons of arrays. Every argument may be a tensor, an array, or what NumPy makes an array of; ``msg`` is said where they
    differ. Each raises AssertionError where what it says does not hold."""

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors."""
        raise NotImplementedError

    def _array(self, value: Any) -> Any:
        if isinstance(value, (_tf.Tensor, _tf.Variable)):
            value = self.evaluate(value)
        return np.asarray(value)

    # -- numbers of Python

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
        """Two numbers are at most ``err`` apart."""
        self.assertTrue(
            f1 == f2 or math.fabs(f1 - f2) <= err, f"{f1!r} != {f2!r} +/- {err!r}{'' if msg is None else f' ({msg})'}"
        )

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Two lists are as long, and each pair of their numbers is at most ``err`` apart."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802
        """The norm of the difference of two arrays is below ``err``."""
        distance = np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2))
        self.assertTrue(distance < err, msg or f"the norm of the difference is {distance}, not below {err}")

    # -- closeness

    def assertAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Two arrays have one shape and ``|a - b| <= atol + rtol * |b|``; NaN equals NaN. Or two structures of dicts and lists do.

        Raises:
          ValueError: a dict stands beside what is none.
        """
        self._close(a, b, rtol, atol, "", msg)

    def _close(self, a: Any, b: Any, rtol: float, atol: float, path: str, msg: str | None) -> None:
        a, b = (dict(x._asdict()) if hasattr(x, "_asdict") else x for x in (a, b))
        where = f"[{path}] " if path else ""
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"{where}Can't compare dict to non-dict: {a!r} beside {b!r}. {msg or ''}")
        if isinstance(a, Mapping):
            self.assertCountEqual(a, b, f"{where}mismatched keys. {msg or ''}")
            for key in a:
                self._close(a[key], b[key], rtol, atol, f"{path}[{key!r}]", msg)
        elif isinstance(a, (list, tuple)) and not self._is_array(a, b):
            if len(a) != len(b):
                self.fail(f"{where}Mismatched length: a has {len(a)} items, but b has {len(b)} items. {msg or ''}")
            for i, (one, other) in enumerate(zip(a, b, strict=True)):
                self._close(one, other, rtol, atol, f"{path}[{i}]", msg)
        else:
            self._arrays_close(self._array(a), self._array(b), rtol, atol, where, msg)

    def _is_array(self, *values: Any) -> bool:
        """Return whether NumPy makes arrays of numbers of all of them; lists of several shapes, of tensors and of dicts are
        structures.
        """
        try:
            return all(np.asarray(v).dtype.kind not in "OSU" for v in values)
        except (TypeError, ValueError):
            return False

    def _arrays_close(self, a: Any, b: Any, rtol: float, atol: float, where: str, msg: str | None) -> None:
        self._same_shape(a, b, f"{where}{msg or ''}")
        wide = [x.astype(np.float32) if x.dtype == dtypes.bfloat16.as_numpy_dtype else x for x in (a, b)]
        np.testing.assert_allclose(*wide, rtol=rtol, atol=atol, err_msg=f"{where}{msg or ''}", equal_nan=True)

    def _same_shape(self, a: Any, b: Any, msg: str) -> None:
        self.assertEqual(a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}. {msg}")

    def assertAllCloseAccordingToType(  # noqa: N802
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """As :meth:`assertAllClose`, with tolerances at least those of the narrower dtype of the two."""
        a, b = self._array(a), self._array(b)
        held = {x.dtype for x in (a, b)}
        for names, wider_rtol, wider_atol in (
            ((np.float32, np.complex64), float_rtol, float_atol),
            ((np.float16,), half_rtol, half_atol),
            ((dtypes.bfloat16.as_numpy_dtype,), bfloat16_rtol, bfloat16_atol),
        ):
            if held & {np.dtype(name) for name in names}:
                rtol, atol = max(rtol, wider_rtol), max(atol, wider_atol)
        self.assertAllClose(a, b, rtol=rtol, atol=atol, msg=msg)

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:  # noqa: N802
        """:meth:`assertAllClose` does not hold."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements")

    # -- equality and order

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Two arrays have one shape and equal elements; NaN equals NaN."""
        a, b = self._array(a), self._array(b)
        self._same_shape(a, b, msg or "")
        same = a == b
        if a.dtype in _FLOATING and b.dtype in _FLOATING:
            same = same | (np.isnan(a) & np.isnan(b))
        if not np.all(same):
            np.testing.assert_array_equal(a, b, err_msg=msg or "")
            raise AssertionError(f"the arrays differ: {a} beside {b}. {msg or ''}")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """:meth:`assertAllEqual` does not hold."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(f"The two values are equal at all elements. {msg or ''}")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Each element is above a number."""
        a = self._array(a)
        self.assertTrue(np.all(a > comparison_target), f"not all above {comparison_target}: {a}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Each element is below a number."""
        a = self._array(a)
        self.assertTrue(np.all(a < comparison_target), f"not all below {comparison_target}: {a}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Each element is a number or above it."""
        a = self._array(a)
        self.assertTrue(np.all(a >= comparison_target), f"some below {comparison_target}: {a}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Each element is a number or below it."""
        a = self._array(a)
        self.assertTrue(np.all(a <= comparison_target), f"some above {comparison_target}: {a}")

    def assertAllInRange(  # noqa: N802
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Each element is between two numbers, which count unless their end is open; NaN is not."""
        found = self._array(target)
        above = found > lower_bound if open_lower_bound else found >= lower_bound
        below = found < upper_bound if open_upper_bound else found <= upper_bound
        ends = f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}{')' if open_upper_bound else ']'}"
        self.assertTrue(np.all(above & below), f"not all in {ends}: {found[~(above & below)]}")

    def assertAllInSet(self, target: Any, expected_set: Iterable[Any]) -> None:  # noqa: N802
        """Each element is one of some values."""
        wrong = np.setdiff1d(self._array(target), list(expected_set))
        self.assertEqual(wrong.size, 0, f"{wrong.size} unique elements are not in the set {expected_set}: {wrong}")

    # -- parts of graphs and texts

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:  # noqa: N802
        """The static shape of a tensor is the shape of an array.

        Raises:
          TypeError: they are none.
        """
        if not isinstance(np_array, (np.ndarray, np.generic)):
            raise TypeError("np_array must be a Numpy ndarray or Numpy scalar")
        if not isinstance(tf_tensor, _tf.Tensor):
            raise TypeError("tf_tensor must be a Tensor")
        self.assertAllEqual(np_array.shape, tf_tensor.shape.as_list(), msg=msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:  # noqa: N802
        """Two names mean one device."""
        one, other = (_tf.DeviceSpec.from_string(str(d or "")).to_string() for d in (device1, device2))
        self.assertEqual(one, other, msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:  # noqa: N802
        """A text begins with another."""
        if not actual.startswith(expected_start):
            self.fail(f"{actual!r} does not start with {expected_start!r}" + (f" : {msg}" if msg else ""))

    def assertProtoEquals(  # noqa: N802
        self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None
    ) -> None:
        """A message equals another, or the one that a text in protobuf's text format means."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = messages.from_text(type(message).__qualname__, expected, "the expected message", strict=True)
        if not isinstance(expected, type(message)):
            self.fail(f"Can't compare protos of type {type(expected)} and {type(message)}. {msg or ''}")
        if expected != message:
            self.assertMultiLineEqual(messages.to_text(expected), messages.to_text(message), msg)
            self.fail(msg or "the messages differ in fields that have no text")


# Python dropped these names; tests of TensorFlow 1's time have them.
for _old, _new in {
    "assertItemsEqual": "assertCountEqual",
    "assertEquals": "assertEqual",
    "assertNotEquals": "assertNotEqual",
    "assertAlmostEquals": "assertAlmostEqual",
    "assertRegexpMatches": "assertRegex",
    "assertNotRegexpMatches": "assertNotRegex",
    "assertRaisesRegexp": "assertRaisesRegex",
    "assert_": "assertTrue",
}.items():
    setattr(Comparisons, _old, getattr(unittest.TestCase, _new))
