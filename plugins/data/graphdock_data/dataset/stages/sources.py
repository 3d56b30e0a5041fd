"""Sources: stages that have none behind them: tensors, their slices, ranges, Python generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import errors

from graphdock_data.dataset.stages.batching import length_of, parts_of, rows_of
from graphdock_data.dataset.stages.stage import Element, Resumed, Run, Stage, Value

__all__ = ["Generator", "Range", "Slices", "Tensors", "fits"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tensors(Stage):
    """One element."""

    title = "TensorDataset"
    values: tuple[Value, ...]

    def iterate(self, run: Run) -> Iterator[Element]:
        return iter([tuple([run.array(v) for v in self.values])])


@dataclass(frozen=True, eq=False, kw_only=True)
class Slices(Stage):
    """What lies along the first axis, one after another.

    Attributes:
      sparse: where the components of SparseTensors begin.
    """

    title = "TensorSliceDataset"
    values: tuple[Value, ...]
    sparse: tuple[int, ...] = ()

    def check(self, run: Run) -> None:
        arrays = [run.array(v) for v in self.values]
        first = length_of(arrays, 0, self.sparse)
        for at in parts_of(len(arrays), self.sparse):
            length = length_of(arrays, at, self.sparse)
            if length is None or length != first:
                raise self.refusal(
                    f"component {at} has another first axis than component 0", expected=str(first), got=str(length)
                )

    def iterate(self, run: Run) -> Iterator[Element]:
        if self.sparse:
            return rows_of([run.array(v) for v in self.values], self.sparse)
        return zip(*[_rows(run.array(v)) for v in self.values], strict=False)


def _rows(array: Any) -> Iterator[Any]:
    if array.ndim == 1 and array.dtype == object:
        return (array[i, ...] for i in range(len(array)))
    return iter(array)


@dataclass(frozen=True, eq=False, kw_only=True)
class Range(Stage):
    """Integers from one to another."""

    title = "RangeDataset"
    start: Value
    stop: Value
    step: Value

    def check(self, run: Run) -> None:
        if run.number(self.step) == 0:
            raise self.refusal("step must be a non-zero integer.")

    def iterate(self, run: Run) -> Iterator[Element]:
        kind = self.types[0].np.type
        numbers = range(run.number(self.start), run.number(self.stop), run.number(self.step))
        return zip(map(kind, numbers))


@dataclass(frozen=True, eq=False, kw_only=True)
class Generator(Stage):
    """What a Python generator gives.

    Attributes:
      generator: called with the arguments' arrays whenever an iterator begins.
      flatten: the components of a value that it gave; raises TypeError or ValueError where it is of another structure.
    """

    title = "GeneratorDataset"
    generator: Callable[..., Any]
    args: tuple[Value, ...]
    flatten: Callable[[Any], list[Any]]

    def iterate(self, run: Run) -> Iterator[Element]:
        given = _Given()
        make = [component(kind) for kind in self.types]
        return Resumed(lambda: self._elements(run, given, make))

    def _elements(self, run: Run, given: _Given, make: list[Callable[[Any], Any]]) -> Iterator[Element]:
        with self.blame():
            if given.values is None:
                given.values = iter(())  # of a generator that could not begin
                try:
                    given.values = iter(self.generator(*[run.array(a) for a in self.args]))
                except errors.GraphdockError:
                    raise
                except Exception as error:
                    raise self._of_generator(error, "could not begin") from error
            values = given.values
            while True:
                try:
                    value = next(values)
                except StopIteration:
                    return
                except errors.GraphdockError:
                    raise
                except Exception as error:
                    raise self._of_generator(error, f"raised, instead of element {given.number},") from error
                number = given.number
                given.number += 1
                yield self._element(value, number, make)

    def _element(self, value: Any, number: int, make: list[Callable[[Any], Any]]) -> Element:
        try:
            parts = self.flatten(value)
        except (TypeError, ValueError) as error:
            raise errors.InvalidArgumentError(
                "`generator` yielded an element that did not match the expected structure. "
                f"The expected structure was {self.structure}, but the yielded element, number {number}, was {value!r}."
            ) from error
        element: list[Any] = []
        try:
            for convert, part in zip(make, parts, strict=True):
                element.append(convert(part))
        except (TypeError, ValueError, OverflowError) as error:
            at = len(element)
            raise errors.InvalidArgumentError(
                "`generator` yielded an element that could not be converted to the expected type. "
                f"The expected type was {self.types[at].name}, but the yielded element, number {number}, was {parts[at]!r}."
            ) from error
        for array, dims in zip(element, self.shapes, strict=True):
            if array.shape != dims and not fits(array.shape, dims):
                raise errors.InvalidArgumentError(
                    f"`generator` yielded an element of shape {array.shape}, number {number}, "
                    f"where an element of shape {dims} was expected."
                )
        return tuple(element)

    @property
    def structure(self) -> str:
        return ", ".join(kind.name for kind in self.types)

    def _of_generator(self, error: Exception, what: str) -> errors.GraphdockError:
        kind = next((mine for raised, mine in _RAISED if isinstance(error, raised)), errors.UnknownError)
        return kind(f"the generator {what} {type(error).__name__}: {error}")


class _Given:
    """Where a Generator is.

    Attributes:
      values: of the Python generator; None before it was called. number: how many it gave.
    """

    def __init__(self) -> None:
        self.values: Iterator[Any] | None = None
        self.number = 0


#: Class of what a generator raises -> the error of the step, as of a ``py_func``.
_RAISED: tuple[tuple[type[Exception], type[errors.GraphdockError]], ...] = (
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
    (ValueError, errors.InvalidArgumentError),
    (TypeError, errors.InvalidArgumentError),
)


_NUMPY = (np.ndarray, np.generic)


def fits(shape: tuple[int, ...], dims: tuple[int | None, ...] | None) -> bool:
    """Return whether a shape is one of those that dims allow."""
    if dims is None or shape == dims:
        return True
    return len(shape) == len(dims) and all(d is None or d == s for d, s in zip(dims, shape, strict=True))


def component(kind: Any) -> Callable[[Any], Any]:
    """A function that makes an array of a dtype of a Python value.

    Raises:
      TypeError, ValueError, OverflowError: the value is of another kind.
    """
    if kind.kind == "S":
        return _texts
    wanted = kind.np

    def convert(value: Any) -> Any:
        if isinstance(value, _NUMPY):
            if value.dtype == wanted:
                return value.copy()
            array = value
        else:
            array = np.asarray(value)
        if array.dtype == wanted:
            return array
        if array.dtype.kind == "f" and wanted.kind in "iu" or array.dtype.kind in "OUS" and array.size:
            raise TypeError(f"{array.dtype} is not {kind.name}")
        return array.astype(wanted)

    return convert


def _texts(value: Any) -> Any:
    array = np.asarray(value, object)
    flat = [_bytes(text) for text in array.ravel().tolist()]
    made = np.empty(array.size, object)
    made[:] = flat
    return made.reshape(array.shape)


def _bytes(text: Any) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode()
    raise TypeError(f"{text!r} is no text")
