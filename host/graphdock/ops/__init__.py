"""What op packages build on: ``apply_op``, conversion, scopes, and the registration of gradients and kernels.

The name is TensorFlow's own: ``ops.RegisterGradient``, ``ops.control_dependencies``.
"""

from __future__ import annotations

import importlib
from typing import Any

from graphdock.ops.names import ENDPOINTS as _OTHERS
from graphdock.ops.names import FUNCTIONS as _FUNCTIONS


def _generated() -> dict[str, str]:
    """Wrappers of the host's own ops. Read late, for opgen imports this package before there are any."""
    table: dict[str, str] = importlib.import_module("graphdock.ops._gen.endpoints").ENDPOINTS
    return table


def _published(name: str) -> str | None:
    """What a plugin publishes below ``tf.ops``."""
    found: str | None = importlib.import_module("graphdock.plugin.host").default_host().endpoints.target(f"ops.{name}")
    return found


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    target = _FUNCTIONS.get(name) or _OTHERS.get(name)
    if target is None and not name.startswith("__"):
        target = _generated().get(name) or _published(name)
    if target is None:
        raise AttributeError(f"module 'graphdock.ops' has no attribute {name!r}")
    module, _, attribute = target.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_FUNCTIONS, *_OTHERS, *(name for name in _generated() if "." not in name)})
