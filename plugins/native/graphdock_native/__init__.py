"""Kernels in C and C++: from shared libraries, over the small interface of ``include/graphdock/kernel.h``.

    LIBRARY = NativeLibrary("_native/kernels", package="graphdock_mine")
    KERNELS = [LIBRARY.kernel("mine.Scale", "mine_scale", types={"T": ["float32"]})]

Importing this package, or declaring kernels, opens no library and imports neither cffi nor NumPy: both wait for the first plan
that uses such a kernel. ``graphdock doctor`` and ``graphdock plugins --probe`` open the libraries of a plugin and look every
symbol up. The page docs/write-a-native-kernel.md tells the whole.
"""

from __future__ import annotations

from graphdock_native.build import compile_library, include_directory, platform_tag
from graphdock_native.library import Launch, NativeLibrary

__all__ = ["Launch", "NativeLibrary", "compile_library", "include_directory", "platform_tag"]
