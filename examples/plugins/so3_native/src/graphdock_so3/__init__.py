"""The SO(3) tensor product for graphdock, in C, with NumPy kernels beside it."""

from graphdock_so3._gen.so3_ops import tensor_product, tensor_product_grad

__all__ = ["tensor_product", "tensor_product_grad"]
