"""The names of ``tf.testing``: strings only."""

from __future__ import annotations

__all__ = ["ENDPOINTS"]

ENDPOINTS: dict[str, str] = {"testing.opcheck": "graphdock_testing.op_check:opcheck"}
