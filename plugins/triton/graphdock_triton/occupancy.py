"""Number of blocks of a compiled kernel that a multiprocessor runs side by side, and what time that lets a kernel expect.

The limits are those of the table "Technical Specifications per Compute Capability" of NVIDIA's CUDA C++ Programming Guide (warps,
blocks, registers, shared memory per multiprocessor); what is handed out at once (256 registers to a warp, warps in fours, 1 KiB of
shared memory to each block besides its own) is that of NVIDIA's occupancy calculator (``cuda_occupancy.h`` of the CUDA Toolkit).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from graphdock_triton.cubin import Cubin

__all__ = ["LIMITS", "Limits", "blocks_of", "cost", "limits_of"]

_REGISTERS = 65536
_REGISTER_UNIT = 256
_WARP_UNIT = 4
_SHARED_UNIT = 128
#: Warps that hide the latency of memory where each has several loads under way; more gain nothing.
_ENOUGH_WARPS = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a multiprocessor. ``shared``: bytes of shared memory; ``reserved``: of them, for each block itself."""

    warps: int
    blocks: int
    shared: int
    reserved: int = 1024


#: Compute capability -> limits.
LIMITS: Mapping[int, Limits] = {
    70: Limits(64, 32, 96 << 10, 0),
    75: Limits(32, 16, 64 << 10, 0),
    80: Limits(64, 32, 164 << 10),
    86: Limits(48, 16, 100 << 10),
    89: Limits(48, 24, 100 << 10),
    90: Limits(64, 32, 228 << 10),
    100: Limits(64, 32, 228 << 10),
    120: Limits(48, 24, 100 << 10),
}


def limits_of(architecture: str) -> Limits:
    """Limits of ``sm_90a``; of one that is not known those of the newest before it."""
    digits = re.sub(r"\D", "", architecture)
    number = int(digits) if digits else 0
    return LIMITS[max((n for n in LIMITS if n <= number), default=70)]


def blocks_of(cubin: Cubin, limits: Limits) -> int:
    """Blocks that a multiprocessor runs side by side; 0 where not even one fits."""
    warps = -(-cubin.threads // 32)
    found = [limits.blocks, limits.warps // warps]
    if cubin.registers > 0:
        each = -(-cubin.registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
        held = _REGISTERS // each // _WARP_UNIT * _WARP_UNIT
        found.append(held // warps)
    taken = -(-(cubin.shared + limits.reserved) // _SHARED_UNIT) * _SHARED_UNIT
    if taken:
        found.append(limits.shared // taken)
    return max(min(found), 0)


def cost(
    cubin: Cubin, limits: Limits, blocks: int, work: int, multiprocessors: int, enough: int = _ENOUGH_WARPS
) -> float:
    """An estimate to compare kernels of one task by, of those that wait for memory: smaller is quicker; infinite where none runs.

    Blocks run in waves, each as long as a full one; fewer warps than hide the latency of memory make it longer, and so do registers
    that spill.

    Args:
      blocks: of the launch. ``work``: bytes that a block moves. ``enough``: warps that hide what they wait for.
    """
    side_by_side = blocks_of(cubin, limits)
    if not side_by_side:
        return float("inf")
    waves = -(-blocks // (side_by_side * multiprocessors))
    at_once = min(side_by_side, -(-blocks // multiprocessors))
    warps = at_once * -(-cubin.threads // 32)
    spilled = max(cubin.spills, 0) * cubin.threads
    return waves * at_once * (work + 2 * spilled) / min(1.0, warps / enough)
