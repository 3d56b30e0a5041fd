"""Staging areas with keys: TensorFlow's ``data_flow_ops.MapStagingArea``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, DTypeError, InvalidArgumentError
from graphdock.typing import TensorLike


class MapStagingArea:
    """Elements of several components by int64 keys, each given once; components may be put and taken one by one.

    Args:
      dtypes, shapes, names: of the components; shapes and names may be None.
      shared_name: under which sessions of a container share it.
      ordered: without a key the element with the least is taken, else the one that came first.
      capacity: elements that it holds. memory_limit: bytes that it holds, elements that lack components among them. 0: any number.

    Raises:
      InvalidArgumentError: not as many shapes or names as dtypes. ArgumentTypeError: ``shared_name`` is no string.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if shared_name is not None and not isinstance(shared_name, str):
            raise ArgumentTypeError("shared_name must be a string", got=repr(shared_name))
        self._dtypes = [_tf.as_dtype(d) for d in dtypes]
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(self._dtypes):
                raise InvalidArgumentError(f"StagingArea {what} must be the same length as dtypes", got=repr(given))
        self._shapes = [_tf.TensorShape(s) for s in (shapes if shapes is not None else [None] * len(self._dtypes))]
        self._names = None if names is None else list(names)
        self._ordered, self._capacity, self._memory_limit = ordered, capacity, memory_limit
        known = all(s.is_fully_defined() for s in self._shapes)
        self._ref = _ops.apply_op(
            "GraphdockMapStagingArea",
            component_types=self._dtypes,
            shapes=[s.as_list() for s in self._shapes] if known else [],
            shared_name=shared_name or "",
            ordered=ordered,
            capacity=capacity,
            memory_limit=memory_limit,
            name="MapStagingArea",
        )

    @property
    def name(self) -> str:
        return str(self._ref.op.name)

    @property
    def dtypes(self) -> list[Any]:
        return self._dtypes

    @property
    def shapes(self) -> list[Any]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def memory_limit(self) -> int:
        return self._memory_limit

    def put(self, key: TensorLike, vals: Any, indices: Sequence[int] | None = None, name: str | None = None) -> Any:
        """An operation that puts components of an element; its step waits for room.

        An element is there once all of its components were put. One whose key is there already is dropped, as TensorFlow does.

        Args:
          key: an int64 scalar. vals: a dict by names, of an area with names; else a tensor or a list of them.
          indices: which components a list is, each above the one before.

        Raises:
          InvalidArgumentError: names, indices or shapes that don't fit. DTypeError: other dtypes. In the step
            InvalidArgumentError: a component that the element has already; ResourceExhaustedError: larger than the limit.
        """
        tensors, places = self._components(vals, indices)
        return self._run("GraphdockMapStage", name, "put", key=_key(key), indices=places, components=tensors)

    def peek(self, key: TensorLike, indices: Sequence[int | str] | None = None, name: str | None = None) -> Any:
        """Components of an element, which stay: a list of them, or a dict by their names; its step waits for the key.

        Args:
          key: an int64 scalar. indices: which components, by place or name; default: all.

        Raises:
          in the step InvalidArgumentError: one of them was taken.
        """
        places = self._places(indices)
        found = self._run(
            "GraphdockMapPeek", name, "peek", key=_key(key), indices=places, component_types=self._types(places)
        )
        return self._answer(found, places)

    def get(
        self, key: TensorLike | None = None, indices: Sequence[int | str] | None = None, name: str | None = None
    ) -> tuple[Any, Any]:
        """A key and components of its element, which are taken; its step waits for the key, without one for any.

        An element is gone when its last component was taken. As :meth:`peek`.
        """
        places = self._places(indices)
        taken: dict[str, Any] = {"indices": places, "component_types": self._types(places)}
        if key is not None:
            key = _key(key)
            return key, self._answer(self._run("GraphdockMapUnstage", name, "get", key=key, **taken), places)
        found, components = self._run("GraphdockMapUnstageNoKey", name, "get_nokey", **taken)
        return found, self._answer(components, places)

    def size(self, name: str | None = None) -> Any:
        """The number of elements, a scalar int32."""
        return self._run("GraphdockMapSize", name, "size")

    def incomplete_size(self, name: str | None = None) -> Any:
        """The number of elements that lack components, a scalar int32."""
        return self._run("GraphdockMapIncompleteSize", name, "incomplete_size")

    def clear(self, name: str | None = None) -> Any:
        """An operation that drops all elements."""
        return self._run("GraphdockMapClear", name, "clear")

    # -- parts ------------------------------------------------------------------------------------------------------------

    def _run(self, op: str, name: str | None, what: str, **inputs: Any) -> Any:
        return _ops.apply_op(op, handle=self._ref, name=name or f"{self.name.rpartition('/')[2]}_{what}", **inputs)

    def _types(self, places: list[int]) -> list[Any]:
        return [self._dtypes[i] for i in places]

    def _components(self, vals: Any, indices: Sequence[int] | None) -> tuple[list[Any], list[int]]:
        if isinstance(vals, Mapping):
            if not self._names:
                raise InvalidArgumentError("Staging areas must have names to enqueue a dictionary")
            if not set(vals) <= set(self._names):
                raise InvalidArgumentError(
                    "Keys in dictionary to put do not match names of staging area.",
                    expected=", ".join(sorted(self._names)),
                    got=", ".join(sorted(map(str, vals))),
                )
            places = [i for i, n in enumerate(self._names) if n in vals]
            listed = [vals[self._names[i]] for i in places]
        else:
            if self._names:
                raise InvalidArgumentError("You must enqueue a dictionary in a staging area with names")
            if indices is None:
                raise InvalidArgumentError("Indices must be supplied when inserting a list of tensors")
            listed = list(vals) if isinstance(vals, list | tuple) else [vals]
            places = list(indices)
        if len(places) != len(listed):
            raise InvalidArgumentError(f"Number of indices {len(places)} doesn't match number of values {len(listed)}")
        self._check(places)
        tensors = []
        for value, i in zip(listed, places, strict=True):
            tensor = _ops.convert_to_tensor(value, None if isinstance(value, _tf.Tensor) else self._dtypes[i])
            if tensor.dtype is not self._dtypes[i]:
                raise DTypeError(
                    f"component {i} of {self.name!r} is of another dtype",
                    expected=self._dtypes[i].name,
                    got=tensor.dtype.name,
                )
            tensor.shape.assert_is_compatible_with(self._shapes[i])
            tensors.append(tensor)
        return tensors, places

    def _places(self, indices: Any) -> list[int]:
        if indices is None:
            return list(range(len(self._dtypes)))
        if not isinstance(indices, list | tuple):
            raise ArgumentTypeError("indices must be a list of places or names", got=repr(indices))
        if all(isinstance(i, str) for i in indices):
            missing = [i for i in indices if i not in (self._names or ())]
            if missing:
                raise InvalidArgumentError(
                    f"{self.name!r} has no such names", expected=repr(self._names), got=repr(missing)
                )
            indices = [(self._names or []).index(i) for i in indices]
        elif not all(isinstance(i, int) for i in indices):
            raise ArgumentTypeError("Mixed types in indices: they may only be strings or integers", got=repr(indices))
        self._check(list(indices))
        return list(indices)

    def _check(self, places: list[int]) -> None:
        count = len(self._dtypes)
        if not places or places != sorted(set(places)) or not 0 <= places[0] <= places[-1] < count:
            raise InvalidArgumentError(
                f"indices of components of {self.name!r} don't fit",
                expected=f"some of 0 to {count - 1}, each above the one before",
                got=repr(places),
            )

    def _answer(self, found: Any, places: list[int]) -> Any:
        tensors = list(found) if isinstance(found, list | tuple) else [found]
        for tensor, i in zip(tensors, places, strict=True):
            tensor.set_shape(self._shapes[i])
        return tensors if self._names is None else {self._names[i]: t for i, t in zip(places, tensors, strict=True)}


def _key(key: TensorLike) -> Any:
    tensor = _ops.convert_to_tensor(key, None if isinstance(key, _tf.Tensor) else _tf.int64)
    if tensor.dtype is not _tf.int64:
        raise DTypeError("keys of a staging area are of another dtype", expected="int64", got=tensor.dtype.name)
    return tensor
