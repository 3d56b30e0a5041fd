"""Tests as programs, and what they ask of the machine: ``tf.test.main``, folders, and whether there is a GPU."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
import unittest
from collections.abc import Sequence
from typing import NoReturn
from unittest import mock

import graphdock as _tf
from graphdock.errors import DeviceUnavailable, NotFoundError

from graphdock_tf1.platform import app

__all__ = [
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_gpu_available",
    "main",
    "mock",
    "test_src_dir_path",
]


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the tests of the script, as ``unittest.main`` does, after its flags were read; ends the process."""

    def run(words: list[str]) -> None:
        unittest.main(module="__main__", argv=words)

    app.run(run, argv)


@functools.cache
def get_temp_dir() -> str:
    """A folder of this process, removed at its end; ``TEST_TMPDIR`` of the environment, if that is set, which stays."""
    told = os.environ.get("TEST_TMPDIR")
    if told:
        os.makedirs(told, exist_ok=True)
        return told
    made = tempfile.mkdtemp(prefix="graphdock_test_")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def test_src_dir_path(relative_path: str) -> str:
    """The path of a file beside the script's own source: the folder of ``__main__``, and ``relative_path``.

    TensorFlow's begins at its own source tree, which is not here.
    """
    script = getattr(sys.modules["__main__"], "__file__", None)
    return os.path.join(os.path.dirname(os.path.abspath(script)) if script else os.getcwd(), relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]  # no test, whatever runners take it for


def _gpu_type() -> str | None:
    """The device type that answers to ``gpu``; None where no plugin is installed that has one, or it finds no device."""
    host = _tf.default_host()
    try:
        kind = host.device_type("gpu")
        return kind if host.device_infos(kind) else None
    except (NotFoundError, DeviceUnavailable):
        return None


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """Return whether a device answers to ``gpu``.

    Args:
      cuda_only: only one of the type ``cuda``.
      min_cuda_compute_capability: ``(major, minor)`` that it has at least.
    """
    kind = _gpu_type()
    if kind is None or (cuda_only and kind != "cuda"):
        return False
    if min_cuda_compute_capability is None:
        return True
    found = [info.architecture for info in _tf.default_host().device_infos(kind)]
    return any(_capability(each) >= tuple(min_cuda_compute_capability) for each in found)


def _capability(architecture: str | None) -> tuple[int, int]:
    """``(9, 0)`` of ``sm_90``; ``(0, 0)`` of what is no architecture of CUDA."""
    digits = "".join(c for c in (architecture or "").removeprefix("sm_") if c.isdigit())
    return (int(digits[:-1]), int(digits[-1])) if len(digits) >= 2 else (0, 0)


def gpu_device_name() -> str:
    """``"/device:GPU:0"``; an empty text where no device answers to ``gpu``."""
    return "/device:GPU:0" if _gpu_type() else ""


def is_built_with_cuda() -> bool:
    """Return whether a plugin is installed that has devices of the type ``cuda``; there need not be one."""
    try:
        return _tf.default_host().device_type("cuda") == "cuda"
    except NotFoundError:
        return False


def is_built_with_rocm() -> bool:
    """False: no plugin for ROCm is known."""
    return False


def is_built_with_gpu_support() -> bool:
    """Return whether a plugin for GPUs is installed."""
    return is_built_with_cuda()
