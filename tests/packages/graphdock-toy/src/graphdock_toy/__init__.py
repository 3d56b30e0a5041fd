"""A toy accelerator for graphdock. ``scale`` is its own op."""

from typing import Any

__all__ = ["scale"]


def __getattr__(name: str) -> Any:
    if name == "scale":
        from graphdock_toy._gen.toy_ops import scale

        return scale
    raise AttributeError(f"module 'graphdock_toy' has no attribute {name!r}")
