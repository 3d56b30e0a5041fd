"""Elements of a graph, found by name: operations, tensors and collections."""

from __future__ import annotations

import re
import threading
from typing import Any

from graphdock.arguments import check_type
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, did_you_mean
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor

__all__ = ["GraphElements"]


class GraphElements:
    """The operations of a graph by name, and its collections."""

    _lock: threading.RLock
    _ops: list[Operation]
    _by_name: dict[str, Operation]
    #: Handle of a variable -> the read that stands for it where it is asked for by name.
    _reads: dict[Operation, Tensor]
    _collections: dict[Any, list[Any]]

    def _check_open(self) -> None:
        """Raise when the graph takes nothing more; the graph says."""
        raise NotImplementedError

    def get_operations(self) -> list[Operation]:
        """All operations in creation order."""
        return list(self._ops)

    def in_order(self) -> list[Operation]:
        """All operations in creation order, but that one which was made to stand before another stands there."""
        return sorted(self._ops, key=lambda op: op._id)

    def let_read(self, handle: Operation, value: Tensor) -> None:
        """Let the name of a variable's handle, ``"w:0"``, mean this read of it, unless it means one already."""
        self._reads.setdefault(handle, value)

    def get_operation_by_name(self, name: str) -> Operation:
        """Raises NotFoundError with the nearest name."""
        check_type(name, str, "get_operation_by_name: name", "a name such as 'MatMul'")
        op = self._by_name.get(name)
        if op is None:
            raise NotFoundError(f"the graph has no operation {name!r}", hint=did_you_mean(name, self._by_name))
        return op

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor ``"op:port"``; of a variable, ``"w:0"``, its value.

        Raises NotFoundError, or InvalidArgumentError for a name of another form.
        """
        check_type(name, str, "get_tensor_by_name: name", "a name such as 'MatMul:0'")
        op_name, colon, port = name.rpartition(":")
        if not colon or not port.isdigit():
            raise InvalidArgumentError(f"{name!r} does not name a tensor", expected="a name such as 'MatMul:0'")
        op = self.get_operation_by_name(op_name)
        if int(port) >= len(op.outputs):
            raise NotFoundError(f"operation {op_name!r} has {len(op.outputs)} outputs, so there is no {name!r}")
        return self._reads.get(op, op.outputs[int(port)])

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The Tensor or Operation that a handle, a name or something convertible (a Variable) stands for.

        Raises:
          InvalidArgumentError: it is of another graph. ArgumentTypeError: no such thing. NotFoundError: no such name.
        """
        if isinstance(obj, str):
            if ":" in obj and allow_tensor:
                return self.get_tensor_by_name(obj)
            if allow_operation:
                return self.get_operation_by_name(obj)
            op = self._by_name.get(obj)
            whole = op is not None and len(op.outputs) == 1
            raise InvalidArgumentError(
                f"{obj!r} names {'no tensor' if op is None else 'an operation, no tensor'}",
                expected="a name such as 'MatMul:0'",
                hint=f"its output is {obj + ':0'!r}" if whole else None,
            )
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, Tensor) and allow_tensor or isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                owner = obj.op if isinstance(obj, Tensor) else obj
                body = getattr(obj.graph, "name", None)
                where, hint = "belongs to another graph", "open the session with tf.Session(graph=...)"
                if body is not None:
                    where, hint = f"stands inside the body {body!r}", "return it from the function that made it"
                raise InvalidArgumentError(f"{obj.name} {where}", op=owner.name, site=owner.site, hint=hint)
            return obj
        kinds = [k for k, on in (("Tensor", allow_tensor), ("Operation", allow_operation)) if on]
        raise ArgumentTypeError(f"{obj!r} (a {type(obj).__name__}) is not a {' or '.join(kinds)} or the name of one")

    def add_to_collection(self, name: Any, value: Any) -> None:
        with self._lock:
            self._check_open()
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Append ``value`` to each collection of a list of names, or to the one of a single name."""
        keys = [names] if isinstance(names, str) else dict.fromkeys(names)
        for name in keys:
            self.add_to_collection(name, value)

    def clear_collection(self, name: Any) -> None:
        """Empty a collection."""
        with self._lock:
            self._check_open()
            self._collections.pop(name, None)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of the collection; with ``scope``, a regular expression, only items whose name it matches at the beginning."""
        items = self._collections.get(name, [])
        if not scope:
            return list(items)
        try:
            wanted = re.compile(scope)
        except re.error as error:
            raise InvalidArgumentError(f"the scope {scope!r} is no regular expression: {error}") from None
        return [v for v in items if wanted.match(getattr(v, "name", ""))]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        return list(self._collections)
