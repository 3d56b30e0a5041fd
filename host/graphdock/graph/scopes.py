"""Scopes of a graph: what a thread's scopes say of the operations that are made inside them, and the context managers that enter
them. Below them the graph's elements, found by name: operations, tensors and collections.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphdock.arguments import check_type
from graphdock.device_name import DeviceSpec
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, did_you_mean
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor

__all__ = ["GraphElements", "NameTable", "ScopedGraph", "Scopes", "ThreadScopes", "check_name"]

# not compiled: few programs have a name that needs them
_OP_NAME = r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*"
_SCOPE_NAME = r"[A-Za-z0-9_.\\/>-]+"


def check_name(name: str, inner: bool = False) -> None:
    """Raise InvalidArgumentError unless ``name`` may name an operation (or, when ``inner``, follow a scope)."""
    if isinstance(name, str) and name.isascii() and name.isidentifier() and (inner or name[0] != "_"):
        return  # nearly every name, without the pattern
    if not isinstance(name, str) or name.endswith("/") or not re.fullmatch(_SCOPE_NAME if inner else _OP_NAME, name):
        raise InvalidArgumentError(
            f"{name!r} is not a valid name", expected="letters, digits and _ . - / , not beginning with _ or -"
        )


class NameTable:
    """Hands out unique names: ``MatMul``, ``MatMul_1``, ``MatMul_2``. Guarded by its graph's lock.

    Names that differ in case alone count as one, as in TensorFlow: after ``add`` comes ``Add_1``.
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def state(self) -> dict[str, int]:
        """Return what is taken now, for :meth:`restore`."""
        return dict(self._next)

    def restore(self, state: dict[str, int]) -> None:
        """Give back every name that was taken since."""
        self._next = state

    def unique(self, name: str, mark: bool = True) -> str:
        """``name``, or ``name_1``, ... when it is taken. With ``mark`` False nothing is taken."""
        key = name.lower()
        number = self._next.get(key)
        if number is None:
            if mark:
                self._next[key] = 1
            return name
        while (numbered := f"{key}_{number}") in self._next:
            number += 1
        if mark:
            self._next[key] = number + 1
            self._next[numbered] = 1
        return numbered if name == key else f"{name}_{number}"


class GraphElements:
    """The operations of a graph by name, and its collections."""

    _lock: threading.RLock
    _ops: list[Operation]
    _by_name: dict[str, Operation]
    #: Handle of a variable -> the read that stands for it where it is asked for by name.
    _reads: dict[Operation, Tensor]
    _collections: dict[Any, list[Any]]
    _unfeedable: set[Tensor]
    _unfetchable: set[Operation]

    def _check_open(self) -> None:
        """Raise when the graph takes nothing more; the graph says."""
        raise NotImplementedError

    def _note_mutation(self) -> None:
        """Have plans made anew; the graph does."""
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

    def is_feedable(self, tensor: Any) -> bool:
        """Return whether a step takes a value for a tensor, which NumPy has arrays of; ``prevent_feeding`` refuses them."""
        dtype = getattr(tensor, "dtype", None)
        return tensor not in self._unfeedable and (dtype is None or dtype.is_numpy_compatible)

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Refuse values for a tensor from now on."""
        self._unfeedable.add(tensor)
        self._note_mutation()

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Return whether a step gives a tensor, or runs an operation; ``prevent_fetching`` refuses it."""
        dtype = getattr(tensor_or_op, "dtype", None)
        op = getattr(tensor_or_op, "op", tensor_or_op)
        return op not in self._unfetchable and (dtype is None or dtype.is_numpy_compatible)

    def prevent_fetching(self, op: Operation) -> None:
        """Refuse an operation and its outputs as fetches from now on; what needs them still runs them."""
        self._unfetchable.add(op)
        self._note_mutation()

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


class Scopes:
    """State of a thread's scopes at this moment."""

    __slots__ = ("colocation", "container", "control", "devices", "gradient_maps", "gradients", "prefix")

    def __init__(self) -> None:
        self.prefix = ""
        self.control: tuple[Operation, ...] = ()
        self.devices: tuple[DeviceSpec | Callable[[Any], Any], ...] = ()
        #: What ``colocate_with`` names, outermost first.
        self.colocation: tuple[Operation, ...] = ()
        self.container = ""
        #: The maps of ``gradient_override_map`` that are entered, outermost first, and what they say together.
        self.gradient_maps: Sequence[Mapping[str, str]] = ()
        self.gradients: Mapping[str, str] = {}

    def override_gradients(self, maps: Sequence[Mapping[str, str]]) -> None:
        self.gradient_maps = maps
        self.gradients = {op_type: name for one in maps for op_type, name in one.items()}

    def device_for(self, op: Operation) -> DeviceSpec | None:
        for other in reversed(self.colocation):
            if other._device is not None:
                return other._device
        if not self.devices:
            return None
        spec = DeviceSpec()
        for item in reversed(self.devices):
            if isinstance(item, DeviceSpec):
                spec = item.merge(spec)
            else:
                op._device = spec or None  # which a function reads, and what it returns takes the place of
                spec = DeviceSpec.parse(item(op))
        return spec or None

    def groups(self) -> tuple[str, ...]:
        """The operations that a new one shares a device with: of one that is colocated itself, those that it is with."""
        return tuple(dict.fromkeys(name for op in self.colocation for name in op.colocation or (op.name,)))


class ThreadScopes(threading.local):
    """The scopes of the thread that asks."""

    def __init__(self) -> None:
        self.here = Scopes()


class ScopedGraph(GraphElements):
    """The scopes of a graph: those that a thread enters hold for that thread."""

    _names: NameTable
    _threads: ThreadScopes

    @property
    def _scopes(self) -> Scopes:
        return self._threads.here

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix names with ``name/``. A name that ends in ``/`` enters that very scope again; None or "" leaves all."""
        scopes = self._scopes
        before = scopes.prefix
        if not name:
            scopes.prefix = ""
        elif isinstance(name, str) and name.endswith("/"):
            check_name(name[:-1])
            scopes.prefix = name
        else:
            check_name(name, inner=bool(before))
            with self._lock:
                scopes.prefix = self._names.unique(before + name) + "/"
        try:
            yield scopes.prefix
        finally:
            scopes.prefix = before

    def get_name_scope(self) -> str:
        return self._scopes.prefix.rstrip("/")

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """Operations made inside run after these. None clears all outer ones."""
        scopes = self._scopes
        before = scopes.control
        if control_inputs is None:
            scopes.control = ()
        else:
            check_type(control_inputs, Iterable, "control_dependencies", "a list of operations and tensors")
            found = dict.fromkeys(before)
            for item in control_inputs:
                convert = getattr(item, "_as_graph_element", None)
                element = convert() if convert is not None else item
                if isinstance(element, str):
                    element = self.as_graph_element(element)
                op = element if isinstance(element, Operation) else getattr(element, "op", element)
                if not isinstance(op, Operation):
                    raise ArgumentTypeError(f"control input {item!r} is neither an operation nor a tensor")
                found[op] = None
            scopes.control = tuple(found)
        try:
            yield
        finally:
            scopes.control = before

    @contextlib.contextmanager
    def device(self, name: Any) -> Iterator[None]:
        """Ask for a device: a whole or partial name, a function of the operation, or None to clear."""
        scopes = self._scopes
        before = scopes.devices
        if name is None:
            scopes.devices = ()
        else:
            scopes.devices = (*before, name if callable(name) else DeviceSpec.parse(name))
        try:
            yield
        finally:
            scopes.devices = before

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Operations made inside share a device with ``op``, whatever device scopes around say.

        None with ``ignore_existing`` leaves all such scopes.
        """
        scopes = self._scopes
        before = scopes.colocation, scopes.devices
        if op is None:
            if not ignore_existing:
                raise InvalidArgumentError(
                    "colocate_with(None) needs ignore_existing=True", hint="or name an operation"
                )
            scopes.colocation = ()
        else:
            element = self.as_graph_element(op if isinstance(op, (str, Operation)) else getattr(op, "op", op))
            scopes.colocation = (element,) if ignore_existing else (*scopes.colocation, element)
        scopes.devices = ()
        try:
            yield
        finally:
            scopes.colocation, scopes.devices = before

    @contextlib.contextmanager
    def container(self, name: str) -> Iterator[str]:
        """Variables made inside live in the named container, which sessions share; "" is private to each session."""
        scopes = self._scopes
        before = scopes.container
        scopes.container = name
        try:
            yield name
        finally:
            scopes.container = before

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """Operations of the given types, made inside by this thread, use the gradient registered under the mapped name.

        Inner maps add to outer ones. A map ends when its own ``with`` ends, in whatever order several of them do.
        """
        scopes = self._scopes
        entered = dict(op_type_map)
        scopes.override_gradients([*scopes.gradient_maps, entered])
        try:
            yield
        finally:
            scopes.override_gradients([m for m in scopes.gradient_maps if m is not entered])
