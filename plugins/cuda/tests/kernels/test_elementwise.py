"""Ops by formula on the GPU's sources, run on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from graphdock_cuda.kernels.elementwise import KERNELS

OPS = sorted({k.op for k in KERNELS})


@pytest.mark.parametrize("op", OPS)
def test_op(conforms: Callable[..., None], op: str) -> None:
    conforms(op)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_every_case(conforms: Callable[..., None], op: str) -> None:
    conforms(op, every=True)
