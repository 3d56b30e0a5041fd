"""Launches of the library's kernels: what is compiled for each, where scratch memory lies, arguments packed. Imports no triton."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock_triton.compiling import Job, cubin_for
from graphdock_triton.kernels.spec import WIDTHS, Launch, Plan

__all__ = ["VECTOR", "job_of", "offsets_of", "run_of"]

#: Scratch memory of a call lies at multiples of so many bytes.
_ROOM = 256
#: What addresses are multiples of where loads and stores are as wide as they can be.
VECTOR = 16
_FORMATS: Mapping[str, str] = {"i32": "<i", "i64": "<q", "u64": "<Q", "fp32": "<f"}


def offsets_of(planned: Plan) -> tuple[dict[str, int], int]:
    """Scratch argument -> where it lies in one block, and the size of that."""
    offsets, size = {}, 0
    for name, (kind, count) in planned.scratch.items():
        offsets[name] = size
        size += -(-count * WIDTHS[kind] // _ROOM) * _ROOM
    return offsets, size


def job_of(kernel: str, launch: Launch, divisible: Sequence[str], otherwise: Sequence[Job] = ()) -> Job:
    """Return what has to be compiled. Its key holds everything that the code is made for, and the source of the function."""
    function = launch.function
    said = [function.__name__, getattr(function, "cache_key", ""), *_pairs(launch.signature), *_pairs(launch.constants)]
    key = "\0".join([*said, repr(launch.options)])
    return Job(
        f"{kernel}_{function.__name__}",
        key,
        lambda: function,
        launch.signature,
        launch.constants,
        launch.options,
        tuple(divisible),
        launch.room,
        otherwise,
    )


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in sorted(table.items())]


def run_of(
    kernel: str,
    launch: Launch,
    values: Mapping[str, float],
    addresses: Mapping[str, int],
    service: Any,
    queue: Any,
) -> Callable[[], Any]:
    """A launch, packed for addresses: what queues it. ``values``: of arguments that are numbers."""
    if not math.prod(launch.grid):
        return _nothing
    divisible = [n for n in launch.divisible if n not in addresses or addresses[n] % VECTOR == 0]
    job = job_of(kernel, launch, divisible)
    cubin = cubin_for(job, service.architecture)
    params = []
    for name in launch.arguments:
        kind = launch.signature[name]
        if kind.startswith("*"):
            params.append(struct.pack("<Q", addresses[name]))
        else:
            params.append(struct.pack(_FORMATS[kind], launch.dims[name] if name in launch.dims else values[name]))
    room = addresses[launch.place] if cubin.scratch else 0
    params += [struct.pack("<Q", room), struct.pack("<Q", 0)]  # the last: scratch memory of profilers
    function = service.function(
        f"{service.architecture} {job.key} {' '.join(divisible)}", cubin.image, cubin.entry, cubin.shared
    )
    run: Callable[[], Any] = service.launch(queue, function, launch.grid, (cubin.threads,), params, cubin.shared).run
    return run


def _nothing() -> None:
    """A grid without programs."""
