"""Lowering: from a placed plan graph to buffers, bound kernels and the statements of a step."""

from __future__ import annotations

from graphdock_executor.lower.lowering import lower
from graphdock_executor.lower.records import Build, Lowered, Setup, Slot
from graphdock_executor.lower.state import LoweringInput

__all__ = ["Build", "LoweringInput", "Lowered", "Setup", "Slot", "lower"]
