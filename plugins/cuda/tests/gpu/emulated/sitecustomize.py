"""Every process that has this folder on its path has one GPU, which is emulated: ``scripts/gpu_check.sh`` is tried out so."""

import functools

from graphdock_cuda.factory import CudaFactory
from graphdock_cuda.testing import toolkit

CudaFactory.__init__.__defaults__ = (functools.cache(lambda: toolkit(seed=1)),)
