"""The public names of TensorFlow 1's Python library: dotted name -> ``"module:attribute"``, strings only."""

from __future__ import annotations

import importlib
import pkgutil

import graphdock_tf1.names

__all__ = ["ENDPOINTS"]

ENDPOINTS: dict[str, str] = {
    name: target
    for found in pkgutil.iter_modules(graphdock_tf1.names.__path__)
    for name, target in importlib.import_module(f"graphdock_tf1.names.{found.name}").ENDPOINTS.items()
}
