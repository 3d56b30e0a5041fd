"""Choice between own code and NumPy's BLAS library for a product that nothing follows, as it was measured on this machine.

By default the shape alone decides (docs/adr/0103), and what was measured before. A session with ``options.llvm.tune`` of
``measure`` measures each product that is not known yet when a plan is made, never in a step. Choices are kept in ``llvm`` of the
cache folder, by shape, dtype, threads, the CPU and the versions of llvmlite and NumPy. A ``deterministic`` session takes none: the
library adds up in another order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from graphdock.contracts import PrepareContext, RegionProgram, cache_dir, read_cache, write_cache

from graphdock_llvm.products import products_of
from graphdock_llvm.target import described

__all__ = ["PlainProduct", "library_is_quicker", "plain_product"]

_LIBRARY, _OWN = "library", "own"


@dataclass(frozen=True, slots=True)
class PlainProduct:
    """A product of two whole matrices.

    Attributes:
      left, right: places among a kernel's arguments, ``out`` that of what is written. ``turned``: which of the two are transposed.
      extents: rows, places of the axis that is summed over, columns.
    """

    left: int
    right: int
    out: int
    turned: tuple[bool, bool]
    extents: tuple[int, int, int]
    dtype: str

    def by_library(self, queue: Any, *buffers: Any) -> None:
        """Compute it by NumPy: a candidate of ``measure``."""
        left, right = [
            buffers[i].T if turned else buffers[i]
            for i, turned in zip((self.left, self.right), self.turned, strict=True)
        ]
        with np.errstate(all="ignore"):  # of lent buffers nobody knows what they hold
            np.matmul(left, right, out=buffers[self.out])


def plain_product(program: RegionProgram, count: int) -> PlainProduct | None:
    """The product that a program is, and nothing else, of known extents.

    Args:
      count: how many inputs its region has.
    """
    products = products_of(program)
    if len(products) != 1 or len(program.outputs) != 1 or any(a.extent is None for a in program.axes):
        return None
    ((number, product),) = products.items()
    sides = [program.inputs[i] for i in (product.left, product.right)]
    plain = program.outputs[0].term == number and program.outputs[0].into is None and len(program.inputs) <= 2
    if not plain or product.row is None or any(s.strides is not None or len(s.dims) != 2 for s in sides):
        return None
    rows, columns, along = product.extents(program)
    turned = sides[0].dims[0] == product.along, sides[1].dims[1] == product.along
    dtype = program.outputs[0].dtype.name
    return PlainProduct(sides[0].source, sides[1].source, count, turned, (rows, along, columns), dtype)


def library_is_quicker(ctx: PrepareContext, product: PlainProduct, own: Callable[[], Callable[..., Any]]) -> str | None:
    """Reason why a product is the library's, which was found to be quicker; None where own code computes it.

    Args:
      own: makes a function of a kernel's arguments, which is only done where it is measured.
    """
    if ctx.deterministic:
        return None
    path = _path(product, ctx.threads)
    chosen = _read(path)
    if chosen is None and ctx.options.get("tune") == "measure":
        chosen = _measured(ctx, product, own())
        if chosen is not None:
            write_cache(path, json.dumps(chosen).encode())
    rows, along, columns = product.extents
    return f"BLAS was measured to be quicker for {rows}x{along}x{columns}" if chosen == _LIBRARY else None


def _measured(ctx: PrepareContext, product: PlainProduct, own: Callable[..., Any]) -> str | None:
    """Name of the quicker one; None where nothing may be measured."""
    called: list[bool] = []

    def by_own(queue: Any, *buffers: Any) -> None:
        called.append(True)
        own(*buffers)

    chosen = (_OWN, _LIBRARY)[ctx.measure([by_own, product.by_library])]
    return chosen if called else None


def _path(product: PlainProduct, threads: int) -> Path:
    import llvmlite

    facts = repr(
        (product.extents, product.turned, product.dtype, threads, described(), llvmlite.__version__, np.__version__)
    )
    return cache_dir() / "llvm" / f"{hashlib.sha256(facts.encode()).hexdigest()[:32]}.choice"


def _read(path: Path) -> str | None:
    """Return what is kept; None where nothing is, or nothing that this version knows."""
    data = read_cache(path)
    found = None if data is None else json.loads(data)
    return found if found in (_OWN, _LIBRARY) else None
