"""Images whose kernel is a Python function: launched, ordered, raced and failed like any other, for packages that bring kernels of
another kind than CUDA C++."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence

from graphdock_cuda.testing.image import Image, Kernel

__all__ = ["PythonImage", "open_image"]

_MAGIC = b"graphdock python image "
_count = itertools.count()
_images: dict[bytes, PythonImage] = {}


class PythonImage:
    """One kernel.

    Args:
      name: of the kernel. ``sizes``: bytes of each parameter. ``threads``: most of a block.
      run: called with the grid and the bytes of each parameter, when the launch's turn has come.

    Attributes:
      image: the bytes that a driver loads, as long as this object lives.
    """

    fixed_shared = 0

    def __init__(
        self,
        name: str,
        sizes: Sequence[int],
        run: Callable[[tuple[int, int, int], list[bytes]], None],
        threads: int = 1024,
    ) -> None:
        self.image = _MAGIC + f"{name} {next(_count)}".encode()
        self.kernels = {name: Kernel(self, 0, name, tuple(sizes), threads)}  # type: ignore[arg-type]
        self._run = run
        _images[self.image] = self

    def close(self) -> None:
        """Nothing is held."""

    def run(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        params: int,
        order: int = 0,
    ) -> None:
        """As of an Image."""
        sources = (ctypes.c_void_p * len(kernel.sizes)).from_address(params)
        self._run(grid, [ctypes.string_at(a or 0, size) for a, size in zip(sources, kernel.sizes, strict=True)])


def open_image(image: bytes) -> Image | PythonImage:
    """Raises ValueError for bytes that are no image."""
    return _images[image] if image in _images else Image(image)
