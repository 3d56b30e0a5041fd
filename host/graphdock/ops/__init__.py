"""What op packages build on: ``apply_op``, conversion, scopes, and the registration of gradients and kernels.

The name is TensorFlow's own: ``ops.RegisterGradient``, ``ops.control_dependencies``.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "apply_op": "graphdock.ops.apply",
    "convert_to_tensor": "graphdock.ops.convert",
    "register_tensor_conversion_function": "graphdock.ops.convert",
    "constant": "graphdock.ops.convert",
    "constant_of": "graphdock.ops.convert",
    "cast": "graphdock.ops.core",
    "shape": "graphdock.ops.core",
    "zeros_like": "graphdock.ops.core",
    "ones_like": "graphdock.ops.core",
    "group": "graphdock.ops.core",
    "identity": "graphdock.ops._gen.core_ops",
    "stop_gradient": "graphdock.ops._gen.core_ops",
    "add_n": "graphdock.ops._gen.core_ops",
    "no_op": "graphdock.ops._gen.core_ops",
    "Graph": "graphdock.graph.graph",
    "get_default_graph": "graphdock.graph.graph",
    "Operation": "graphdock.graph.operation",
    "Tensor": "graphdock.graph.tensor",
    "control_dependencies": "graphdock.ops.scopes",
    "name_scope": "graphdock.ops.scopes",
    "device": "graphdock.ops.scopes",
    "colocate_with": "graphdock.ops.scopes",
    "init_scope": "graphdock.ops.scopes",
    "ShapeContext": "graphdock.opdef.shape_rule",
    "RegisterGradient": "graphdock.gradients.registry",
    "NotDifferentiable": "graphdock.gradients.registry",
    "NoGradient": "graphdock.gradients.registry",
    "GradientNotFilled": "graphdock.errors",
    "RegisterKernel": "graphdock.ops.register_kernel",
    "reset_default_graph": "graphdock.graph.graph",
    "add_internal_folder": "graphdock.graph.site",
}

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'graphdock.ops' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
