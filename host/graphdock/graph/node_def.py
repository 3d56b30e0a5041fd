"""NodeDef: what an operation is, as plain data, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["NodeDef"]


@dataclass(frozen=True, slots=True)
class NodeDef:
    """One node of a GraphDef.

    Attributes:
      name, op: its name and op type. ``device``: the device its scopes asked for, ``""`` when none.
      input: names of its inputs, ``"x"`` for ``x:0`` and ``"x:1"``; then ``"^name"`` of each control input.
      attr: attributes by name, as Python values; TensorFlow wraps each in a message.
    """

    name: str
    op: str
    input: tuple[str, ...]
    device: str
    attr: Mapping[str, Any]
