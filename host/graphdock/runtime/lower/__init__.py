"""Lowering: from a placed plan graph to buffers, bound kernels and the source of a step."""

from __future__ import annotations

from graphdock.runtime.lower.lowering import Lowering
from graphdock.runtime.lower.records import Build, Lowered, Setup, Slot

__all__ = ["Build", "Lowered", "Lowering", "Setup", "Slot"]
