"""GPUs that are not here: what is known of each architecture, and a CUDA that compiles and runs nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts import DeviceUnavailable, errors

from graphdock_cuda.driver.api import Properties, Toolkit

__all__ = ["MODELS", "DeclaredDriver", "declared_toolkit"]


def _model(
    name: str, capability: tuple[int, int], gib: int, multiprocessors: int, shared_kib: int, l2_mib: int
) -> Properties:
    return Properties(name, capability, gib << 30, multiprocessors, shared_kib << 10, l2_cache=l2_mib << 20)


#: Compute capability -> a GPU that has it. Shared memory: the most that one block may have, of table 30 ("Technical Specifications
#: per Compute Capability") of NVIDIA's CUDA C++ Programming Guide; multiprocessors and memory of the models' data sheets.
MODELS: Mapping[tuple[int, int], Properties] = {
    p.capability: p
    for p in (
        _model("Tesla V100", (7, 0), 16, 80, 96, 6),
        _model("Tesla T4", (7, 5), 16, 40, 64, 4),
        _model("A100", (8, 0), 40, 108, 163, 40),
        _model("A40", (8, 6), 48, 84, 99, 6),
        _model("L40", (8, 9), 48, 142, 99, 96),
        _model("H100", (9, 0), 80, 132, 227, 50),
        _model("B200", (10, 0), 180, 148, 227, 126),
        _model("RTX 5090", (12, 0), 32, 170, 99, 96),
    )
}


def properties_of(architecture: str) -> Properties:
    """A GPU of an architecture: ``sm_90``, ``sm_90a``, ``90`` or ``9.0``. Raises DeviceUnavailable with those that are known."""
    match = re.fullmatch(r"(?:sm_)?(\d{1,2})\.?(\d)a?", architecture.lower())
    found = MODELS.get((int(match[1]), int(match[2]))) if match else None
    if found is None:
        known = [f"sm_{major}{minor}" for major, minor in MODELS]
        near = errors.did_you_mean(architecture, known)
        raise DeviceUnavailable(
            f"no GPU of architecture {architecture!r} is known",
            f"one of {', '.join(known)}" + (f"; {near}" if near else ""),
        )
    return found


class DeclaredDriver:
    """The driver of one GPU that is not here. It knows its facts, and hands out addresses that nothing is behind; all work raises
    FailedPreconditionError."""

    def __init__(self, facts: Properties) -> None:
        self._facts = facts
        self._addresses = itertools.count(1 << 40, 1 << 36)

    def device_count(self) -> int:
        return 1

    def properties(self, device: int) -> Properties:
        return self._facts

    def memory_info(self, device: int) -> tuple[int, int]:
        return self._facts.memory, self._facts.memory

    def set_device(self, device: int) -> None:
        """There is one."""

    def trim(self, device: int) -> None:
        """Nothing is kept."""

    def get_device(self) -> int:
        return 0

    def malloc(self, nbytes: int, stream: int) -> int:
        return next(self._addresses)

    def free(self, address: int, stream: int) -> None:
        """Nothing was taken."""

    def stream(self) -> int:
        return 0

    def stream_destroy(self, stream: int) -> None:
        """Nothing was made."""

    def stream_synchronize(self, stream: int) -> None:
        """Nothing was queued."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        raise errors.FailedPreconditionError(
            f"the {self._facts.architecture} that is planned for is not here: it has no {name}",
            hint="leave plan_for out of the session's configuration to run on the GPUs that are here",
        )


def declared_toolkit(architecture: str) -> Toolkit:
    """CUDA for planning. Raises DeviceUnavailable where the architecture is not known, or NVRTC can't be loaded."""
    from graphdock_cuda.driver.nvrtc import Nvrtc

    facts = properties_of(architecture)
    try:
        compiler = Nvrtc()
    except (ImportError, OSError) as error:
        raise DeviceUnavailable(f"NVRTC can't be loaded: {error}", "pip install nvidia-cuda-nvrtc") from error
    return Toolkit(DeclaredDriver(facts), compiler, None, about="declared")
