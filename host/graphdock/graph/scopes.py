"""Scopes of a thread: what they say of the operations that are made inside them, and the context managers that enter them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphdock.arguments import check_type
from graphdock.device_name import DeviceSpec
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.graph.elements import GraphElements
from graphdock.graph.naming import NameTable, check_name
from graphdock.graph.operation import Operation

__all__ = ["ScopedGraph", "Scopes"]


class Scopes(threading.local):
    """What a thread's scopes say at this moment."""

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
        for item in self.devices:
            spec = spec.merge(item if isinstance(item, DeviceSpec) else DeviceSpec.parse(item(op)))
        return spec or None

    def groups(self) -> tuple[str, ...]:
        """The operations that a new one shares a device with: of one that is colocated itself, those that it is with."""
        return tuple(dict.fromkeys(name for op in self.colocation for name in op.colocation or (op.name,)))


class ScopedGraph(GraphElements):
    """The scopes of a graph: those that a thread enters hold for that thread."""

    _names: NameTable
    _scopes: Scopes

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
