"""Iterators: the resource from which steps take a dataset's elements."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, errors
from graphdock.locks import new_lock

from graphdock_data.dataset.stages.prefetch import Ahead
from graphdock_data.dataset.stages.stage import Element, Function, Pipeline, Run

__all__ = ["ITERATOR", "DatasetIterator", "find_iterator"]

_numbers = itertools.count()
_living: weakref.WeakValueDictionary[bytes, DatasetIterator] = weakref.WeakValueDictionary()


class DatasetIterator:
    """Elements of a dataset, one after another; of none until it is begun.

    Any thread may call any method. An element is made on the thread that asks for it, one at a time; where the dataset ends with a
    prefetch, by its thread.

    Attributes:
      name: of its operation, for messages. handle: names it in this process.
      kinds, shapes: of the components.
    """

    def __init__(self, name: str, kinds: Sequence[Any], shapes: Sequence[Any]) -> None:
        self.name, self.kinds, self.shapes = name, tuple(kinds), tuple(shapes)
        self.handle = f"iterator/{next(_numbers)}/{name}".encode()
        self._lock = new_lock()
        self._elements: Iterator[Element] | None = None
        self._run: Run | None = None
        self._own = False
        self._closed = False
        _living[self.handle] = self

    def begin(self, pipeline: Pipeline, arrays: Sequence[Any], functions: Mapping[Function, Any]) -> None:
        """Begin a dataset, in the place of the one before.

        Args:
          arrays: of the pipeline's tensors; they are kept.

        Raises:
          InvalidArgumentError: a stage refuses its arguments.
        """
        run = Run.of(pipeline, arrays, functions)
        elements = pipeline.stage.iterate(run)
        with self._lock:
            before, self._run = self._run, run
            self._elements, self._own = elements, pipeline.stage.own()
        if before is not None:
            before.close()

    @property
    def begun(self) -> bool:
        return self._elements is not None

    def begin_once(self, pipeline: Pipeline, arrays: Sequence[Any], functions: Mapping[Function, Any]) -> None:
        """Begin a dataset, if none was; the arrays are copied then."""
        with self._lock:
            if self._elements is None:
                self.begin(pipeline, [np.array(a) for a in arrays], functions)

    def get_next(self) -> Any:
        """The next element's components, one alone by itself, or the Future of them.

        Raises:
          OutOfRangeError: there are no more. FailedPreconditionError: it was not begun. And what the stages raise.
        """
        with self._lock:
            elements, own = self._elements, self._own
            if self._closed:
                raise errors.CancelledError(f"the iterator {self.name!r} was closed with its session or container")
            if elements is None:
                raise errors.FailedPreconditionError(
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    f"initializer operation for this iterator ({self.name!r}) before getting the next element.",
                    hint="session.run(iterator.initializer); of Iterator.from_structure the operation that "
                    "iterator.make_initializer(dataset) gives",
                )
            finish = _answer if own else _copied
            try:
                return elements.take(finish) if isinstance(elements, Ahead) else finish(next(elements))
            except StopIteration:
                raise errors.OutOfRangeError("End of sequence") from None

    def check(self, kinds: Sequence[Any], shapes: Sequence[Any]) -> None:
        """Refuse who expects other components. Raises InvalidArgumentError."""
        if tuple(kinds) != self.kinds or not all(map(_allows, shapes, self.shapes)):
            raise errors.InvalidArgumentError(
                f"the iterator {self.name!r} gives other components",
                expected=f"{[k.name for k in kinds]} of shapes {list(shapes)}",
                got=f"{[k.name for k in self.kinds]} of shapes {list(self.shapes)}",
            )

    def close(self) -> None:
        """Wake whoever waits, and end the threads."""
        self._closed = True
        run = self._run
        if run is not None:
            run.close()
        self._elements = None
        self._run = None


def _answer(element: Element) -> Any:
    made = [c if isinstance(c, np.ndarray) else np.array(c) for c in element]
    return made[0] if len(made) == 1 else tuple(made)


def _copied(element: Element) -> Any:
    made = [c.copy() if type(c) is np.ndarray else np.array(c) for c in element]
    return made[0] if len(made) == 1 else tuple(made)


def _allows(one: Any, other: Any) -> bool:
    """Return whether dims allow all or some of what others do."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def find_iterator(handle: bytes) -> DatasetIterator:
    """The iterator that a string names. Raises InvalidArgumentError: none that lives."""
    found = _living.get(handle)
    if found is None or found._closed:
        raise errors.InvalidArgumentError(
            f"the handle {handle!r} names no iterator of this process",
            hint="feed what session.run(iterator.string_handle()) gives, in the same session",
        )
    return found


def _create(request: ResourceRequest) -> DatasetIterator:
    return DatasetIterator(request.name, request.attrs["output_types"], request.attrs["output_shapes"])


ITERATOR = ResourceKind("data.Iterator", _create, lock="own", close=lambda iterator, request: iterator.close())
