"""Interpreters of the frameworks: which one runs which.

graphdock and bare NumPy run in the interpreter that runs the benchmark, so both use the same NumPy and the same BLAS.
Every peer has an environment of its own under `.bench/`, made by `python -m benchmarks.setup`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

__all__ = ["KEEP_BYTE_CODE", "PEERS", "REPOSITORY", "VARIABLES", "environment_of", "interpreter_of", "packages_of"]

REPOSITORY = Path(__file__).resolve().parent.parent

# Framework -> what pip installs into its environment; the same distributions as the `bench` extra of pyproject.toml.
PEERS: dict[str, tuple[str, ...]] = {
    "tensorflow": ("tensorflow-cpu", "tf_keras"),
    "torch": ("torch==2.13.0", "numpy"),
    "jax": ("jax",),
    "onnxruntime": ("onnxruntime", "onnx"),
}

# Framework -> what its workers find in their environment, beside what the user has set there.
# TensorFlow has no `nn.rnn_cell` with Keras 3; tf_keras is Keras 2.
VARIABLES: dict[str, dict[str, str]] = {"tensorflow": {"TF_USE_LEGACY_KERAS": "1"}}

# Of all processes that are timed: they keep byte code, though the shell may forbid it, as a user's processes do.
KEEP_BYTE_CODE: Mapping[str, str] = MappingProxyType({"PYTHONDONTWRITEBYTECODE": ""})

_OWN = frozenset({"graphdock", "numpy", "against"})


def environment_of(framework: str, root: Path | None = None) -> Path:
    """The virtual environment of a peer, whether it exists or not. `root` is `.bench` of the repository."""
    return (REPOSITORY / ".bench" if root is None else root) / framework


def interpreter_of(framework: str, root: Path | None = None) -> Path | None:
    """The interpreter that runs `framework`, or None where its environment has not been made (or not finished)."""
    if framework in _OWN:
        return Path(sys.executable)
    environment = environment_of(framework, root)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return python if python.exists() and (environment / "installed.txt").exists() else None


def packages_of(checkout: Path) -> tuple[Path, ...]:
    """The folders of a checkout of this repository that hold packages: on PYTHONPATH they come before what is installed."""
    found = [checkout / "host", checkout / "opgen", checkout / "templates", *sorted((checkout / "plugins").glob("*"))]
    if not (found[0] / "graphdock").is_dir():
        raise FileNotFoundError(f"{checkout} is no checkout of graphdock: it has no host/graphdock")
    return tuple(path for path in found if path.is_dir())
