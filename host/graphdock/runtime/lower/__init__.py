"""Lowering: from a placed plan graph to buffers, bound kernels and the statements of a step."""

from __future__ import annotations

from graphdock.runtime.lower.lowering import lower
from graphdock.runtime.lower.records import Build, Lowered, Setup, Slot
from graphdock.runtime.lower.state import Given

__all__ = ["Build", "Given", "Lowered", "Setup", "Slot", "lower"]
