"""Ops of frames for graphdock."""

from typing import Any


def _public() -> dict[str, str]:
    """Public name -> ``"module:name"``: the wrappers of the ops, and what names.py lists."""
    from graphdock_frames._gen.endpoints import ENDPOINTS as generated
    from graphdock_frames.names import ENDPOINTS, FUNCTIONS

    return {**generated, **FUNCTIONS, **ENDPOINTS}


def __getattr__(name: str) -> Any:
    """Public names, imported at first use: whoever only lists plugins does not pay."""
    public = _public()
    if name == "__all__":
        return sorted(public)
    if name not in public:
        raise AttributeError(f"module 'graphdock_frames' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = public[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(_public())
