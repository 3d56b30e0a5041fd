"""Base of op packages: ``apply_op``, conversion, scopes, and the registration of gradients and kernels.

The name is TensorFlow's own: ``ops.RegisterGradient``, ``ops.control_dependencies``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from graphdock.ops.names import ENDPOINTS as _OTHERS
from graphdock.ops.names import FUNCTIONS as _FUNCTIONS

if TYPE_CHECKING:
    from graphdock.plugin.endpoints import Endpoints


def _generated() -> dict[str, str]:
    """Wrappers of the host's own ops. Read late, for opgen imports this package before there are any."""
    table: dict[str, str] = importlib.import_module("graphdock.ops._gen.endpoints").ENDPOINTS
    return table


def _published() -> Endpoints:
    """Return what plugins publish, below ``tf.ops`` too."""
    found: Endpoints = importlib.import_module("graphdock.plugin.host").default_host().endpoints
    return found


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    target = _FUNCTIONS.get(name) or _OTHERS.get(name)
    if target is None and not name.startswith("__"):
        target = _generated().get(name) or _published().target(f"ops.{name}")
    if target is None:
        from graphdock.plugin.left_out import who_brings

        brought = None if name.startswith("__") else who_brings("ops", name, _published().states)
        raise AttributeError("; ".join(filter(None, (f"module 'graphdock.ops' has no attribute {name!r}", brought))))
    module, _, attribute = target.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    of_plugins = (name[4:] for name in _published().names() if name.startswith("ops."))
    return sorted({*_FUNCTIONS, *_OTHERS, *(name for name in (*_generated(), *of_plugins) if "." not in name)})
