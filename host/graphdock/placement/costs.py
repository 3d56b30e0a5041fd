"""The cost model of a session: seconds of nodes and transfers, measured by traced steps, else from rates of devices."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from graphdock.contracts.costs import UNKNOWN_TIME, Prediction, Rates
from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.device_name import DeviceSpec
from graphdock.errors import InvalidArgumentError
from graphdock.measured_times import MeasuredTimes
from graphdock.shape import concrete, size

if TYPE_CHECKING:
    from graphdock.contracts.step import TraceEvent

__all__ = ["Costs", "nbytes_of"]

#: Letters of a key; what is longer ends with a digest.
_LONGEST = 160

_log = logging.getLogger("graphdock")


def nbytes_of(values: Iterable[Value]) -> int | None:
    """Bytes of some tensors, handles counting as none; None where a shape is unknown, and for strings."""
    total = 0
    for value in values:
        if value.dtype.kind in "RV":
            continue
        elements = size(value.shape)
        if elements is None or not value.dtype.size:
            return None
        total += elements * value.dtype.size
    return total


class Costs:
    """The :class:`graphdock.contracts.costs.CostModel` of a session.

    Args:
      devices: whole name -> the open device. ``spaces``: memory space -> a device that copies there.
      declared: device types that are planned for and need not be here; they have no rates.
      measured: the host's.
    """

    def __init__(
        self,
        devices: Mapping[DeviceSpec, Device],
        spaces: Mapping[str, Device],
        declared: Iterable[str],
        measured: MeasuredTimes,
    ) -> None:
        self._devices = devices
        self._spaces = spaces
        self._declared = frozenset(declared)
        self._measured = measured

    def predict(self, node: PlanNode, device: DeviceSpec | None = None, kernel: str | None = None) -> Prediction:
        where = node.device if device is None else device
        if node.verb == "move":
            nbytes = nbytes_of(node.inputs)
            return UNKNOWN_TIME if nbytes is None else self._moved(nbytes, *_ends(node))
        if where is None or node.opdef.verb.silent:
            return UNKNOWN_TIME
        key = _key(node, self._place(where), kernel)
        seconds = None if key is None else self._measured.seconds(key)
        if seconds is not None:
            return Prediction(seconds, "measured")
        seconds = self.from_rates(node, where)
        return UNKNOWN_TIME if seconds is None else Prediction(seconds, "rates")

    def node(self, node: PlanNode, device: DeviceSpec | None = None) -> float | None:
        return self.predict(node, device).seconds

    def transfer(self, nbytes: int, source: str, target: str) -> float | None:
        return 0.0 if source == target else self._moved(nbytes, source, target).seconds

    def from_rates(self, node: PlanNode, device: DeviceSpec | None = None) -> float | None:
        from graphdock.opdef.cost import cost_of

        where = node.device if device is None else device
        rates = None if where is None else self._rates(self._devices.get(where))
        if rates is None or node.bodies:
            return None
        typed = [[(v.dtype, v.shape) for v in values] for values in (node.inputs, node.outputs)]
        cost = cost_of(node.opdef, node.attrs, *typed)
        return None if cost.flops is None or cost.bytes is None else rates.seconds(cost.flops, cost.bytes)

    def observe(self, graph: PlanGraph, events: Sequence[TraceEvent], cold: bool) -> None:
        """Take in what a traced step told of the nodes of its plan. What can't be told apart, or has no known shape, is left out.

        Args:
          cold: the step was the first of its context.
        """
        keys: dict[tuple[str, str], dict[str | None, int | None]] = {}
        for level in graph.all_graphs():
            for node in level.nodes:
                if node.verb == "move":
                    nbytes = nbytes_of(node.inputs)
                    key = None if nbytes is None else _transfer_key(nbytes, *_ends(node))
                else:
                    key = None if node.device is None else _key(node, self._place(node.device), None)
                    nbytes = nbytes_of([*node.inputs, *node.outputs])
                keys.setdefault((node.origin, node.op), {})[key] = nbytes
        for event in events:
            if event.kind not in ("kernel", "copy"):
                continue
            found = keys.get((event.name, event.op), {})
            # nodes of one operation, such as joined products and what is left single, have bytes of their own
            alike = [
                key for key, nbytes in found.items() if len(found) == 1 or nbytes is None or nbytes == event.nbytes
            ]
            key = alike[0] if len(alike) == 1 else None
            if key is not None and (event.kind == "copy") == key.startswith("move "):
                try:
                    self._measured.record(key, event.seconds, cold)
                except InvalidArgumentError as error:
                    _log.warning("a traced step told a cost that is none: %s", error.message)

    def _moved(self, nbytes: int, source: str, target: str) -> Prediction:
        seconds = self._measured.seconds(_transfer_key(nbytes, source, target))
        if seconds is not None:
            return Prediction(seconds, "measured")
        rates = [r for r in map(self._rates, {self._spaces.get(source), self._spaces.get(target)}) if r is not None]
        if not rates:
            return UNKNOWN_TIME
        return Prediction(max(r.seconds(0, 2 * nbytes) for r in rates), "rates")

    def _rates(self, device: Device | None) -> Rates | None:
        if device is None or device.info.device_type in self._declared:
            return None
        return self._measured.rates(_facts(device), device.rates)

    def _place(self, name: DeviceSpec) -> str:
        """Text of a device for keys, the same for all that are alike."""
        device = self._devices.get(name)
        return f"{name.type}:{name.index}" if device is None else _facts(device)


def _facts(device: Device) -> str:
    """Text that is equal for devices that differ in their number alone: what is measured of each would never tie."""
    info = device.info
    facts = (info.device_type, info.architecture, info.multiprocessors, info.memory_bytes)
    return " ".join(str(f) for f in facts if f)


def _ends(node: PlanNode) -> tuple[str, str]:
    return str(node.attrs["source"]), str(node.attrs["target"])


def _transfer_key(nbytes: int, source: str, target: str) -> str:
    return f"move {source}>{target} {nbytes}"


def _key(node: PlanNode, device: str, kernel: str | None) -> str | None:
    """Op, kernel, device, what attributes switch on (a transposed operand), dtypes and shapes of a node, as one text.

    None where a shape is unknown, or it has no kernel.
    """
    if kernel is None:
        kernel = node.decision.kernel if node.decision is not None else None
    if kernel is None or not node.opdef.verb.kernel:
        return None
    parts = [node.op, *node.attrs["ops"]] if "ops" in node.attrs else [node.op]
    parts += [kernel, device]
    parts += [name for name, value in node.attrs.items() if value is True and name[0] != "_"]
    for value in (*node.inputs, *node.outputs):
        dims = concrete(value.shape)
        if dims is None and value.dtype.kind not in "RV":
            return None
        parts.append(f"{value.dtype.name}[{','.join(map(str, dims or ()))}]")
    key = " ".join(parts)
    if len(key) <= _LONGEST:
        return key
    from hashlib import sha256

    return f"{key[:_LONGEST]} {sha256(key.encode()).hexdigest()[:16]}"
