"""Blocks side by side, against numbers of NVIDIA's occupancy calculator."""

from __future__ import annotations

import math

import pytest
from graphdock_triton.cubin import Cubin
from graphdock_triton.occupancy import LIMITS, blocks_of, cost, limits_of


def cubin(threads, registers, shared=0, spills=0):
    return Cubin(b"", "k", threads, shared, registers=registers, spills=spills)


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "blocks"),
    [
        ("sm_80", 256, 32, 0, 8),  # as many warps as there may be
        ("sm_80", 256, 40, 0, 6),  # 51 warps have registers, handed out in fours: 48
        ("sm_80", 256, 128, 0, 2),
        ("sm_90a", 128, 255, 0, 2),
        ("sm_90a", 32, 16, 0, 32),  # as many blocks as there may be
        ("sm_90a", 128, 32, 48 << 10, 4),
        ("sm_80", 128, 32, 48 << 10, 3),
        ("sm_80", 128, 32, 163 << 10, 1),
        ("sm_80", 128, 32, 164 << 10, 0),
        ("sm_100", 128, 32, 227 << 10, 1),
        ("sm_86", 1024, 32, 0, 1),
        ("sm_90a", 1024, 128, 0, 0),
    ],
)
def test_blocks_of_a_multiprocessor(architecture, threads, registers, shared, blocks):
    assert blocks_of(cubin(threads, registers, shared), limits_of(architecture)) == blocks


def test_an_architecture_that_is_not_known_is_like_the_one_before():
    assert limits_of("sm_103a") is LIMITS[100] and limits_of("sm_87") is LIMITS[86]


def test_what_makes_a_kernel_slower_costs_more():
    limits = limits_of("sm_90")
    plain = cost(cubin(128, 32), limits, 1056, 4096, 132)
    assert cost(cubin(128, 32, spills=64), limits, 1056, 4096, 132) > plain
    assert cost(cubin(128, 255), limits, 1056, 4096, 132) > plain, "eight warps do not hide the latency"
    assert cost(cubin(128, 32), limits, 132 * 16 + 1, 4096, 132) > 1.9 * cost(
        cubin(128, 32), limits, 132 * 16, 4096, 132
    )
    assert cost(cubin(1024, 128), limits, 1056, 4096, 132) == math.inf
