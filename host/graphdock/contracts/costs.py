"""Costs: what a node or a transfer is expected to take, and what the planner knows that from.

A device states its rates (:meth:`graphdock.contracts.device.Device.rates`), a spec what a node computes and moves; traced steps
replace what follows of these by what was measured. Who decides by costs asks a :class:`CostModel`, and says if it was a guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from graphdock.device_name import DeviceSpec
from graphdock.errors import InvalidArgumentError

if TYPE_CHECKING:
    from graphdock.contracts.ir import PlanNode

__all__ = ["UNKNOWN_TIME", "CostModel", "Prediction", "Rates", "checked_seconds"]

#: ``measured``: traced steps of such nodes. ``rates``: what the spec says over the rates of the device. ``unknown``: neither.
Source: TypeAlias = Literal["measured", "rates", "unknown"]


def checked_seconds(what: str, seconds: float) -> float:
    """A cost as it may be kept. Raises InvalidArgumentError for one that is no number, infinite or negative; names ``what``."""
    if not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds < 0:
        raise InvalidArgumentError(
            f"the cost of {what} is wrong", expected="seconds, a finite number of at least 0", got=repr(seconds)
        )
    return float(seconds)


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of a device.

    Attributes:
      flops: arithmetic operations per second, of its best kernels. ``bytes``: that it reads and writes per second in its memory.
      launch: seconds that the smallest kernel takes.

    Raises:
      InvalidArgumentError: a rate that is no finite number above 0; a negative launch.
    """

    flops: float
    bytes: float
    launch: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("flops", self.flops), ("bytes", self.bytes), ("launch", self.launch)):
            number = isinstance(value, (int, float)) and math.isfinite(value)
            if not number or value < 0 or (value == 0 and name != "launch"):
                raise InvalidArgumentError(
                    f"Rates: {name} is wrong", expected="a finite number above 0", got=repr(value)
                )

    def seconds(self, flops: int, nbytes: int) -> float:
        """Seconds of a kernel of so many operations and bytes, of which the slower part hides the other."""
        return self.launch + max(flops / self.flops, nbytes / self.bytes)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds of one run, and what they are known from. None where the source is ``unknown``."""

    seconds: float | None
    source: Source


UNKNOWN_TIME = Prediction(None, "unknown")


class CostModel(Protocol):
    """Seconds of nodes and transfers on the devices of a session. May be asked from any thread."""

    def predict(self, node: PlanNode, device: DeviceSpec | None = None, kernel: str | None = None) -> Prediction:
        """One run of a node: on the device that it is placed on, by the kernel that it has, or on another one, by another.

        Its bodies are not counted, nor what it waits for.
        """

    def from_rates(self, node: PlanNode, device: DeviceSpec | None = None) -> float | None:
        """Seconds that follow of the node's spec and the rates of the device, whatever was measured; None where nobody knows."""

    def node(self, node: PlanNode, device: DeviceSpec | None = None) -> float | None:
        """Seconds of :meth:`predict`; None where nobody knows."""

    def transfer(self, nbytes: int, source: str, target: str) -> float | None:
        """Seconds that so many bytes take from one memory space to another; 0 within one; None where nobody knows."""
