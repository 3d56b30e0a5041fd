"""JAX's functions for network_texts.py, over NHWC. What only the tests' networks need is left to PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["Jax"]


class Jax:
    """Functions that jax.jit compiles. dtype: of zeros that a text makes."""

    relu, sigmoid, tanh = staticmethod(jax.nn.relu), staticmethod(jax.nn.sigmoid), staticmethod(jnp.tanh)
    mean, permute = staticmethod(jnp.mean), staticmethod(jnp.transpose)
    parameter = fed = staticmethod(jnp.asarray)

    def __init__(self, dtype: Any = jnp.float32) -> None:
        self._dtype = dtype

    def width(self, x: Any) -> int:
        return int(x.shape[3])

    def conv(self, x: Any, w: Any, b: Any, stride: int, padding: str) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y if b is None else y + b

    def max_pool(self, x: Any, window: int, stride: int, padding: str) -> Any:
        size, steps = (1, window, window, 1), (1, stride, stride, 1)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, steps, padding)

    def whole_mean(self, x: Any) -> Any:
        return x.mean((1, 2))

    def channels(self, parts: Sequence[Any]) -> Any:
        return jnp.concatenate(list(parts), 3)

    def flat(self, x: Any) -> Any:
        return x.reshape(len(x), -1)

    def layer_norm(self, x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + epsilon) * gamma + beta

    def gelu(self, x: Any) -> Any:
        return jax.nn.gelu(x, approximate=False)

    def attention(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
        assert not causal
        return jax.nn.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v

    def rows(self, table: Any, ids: Any) -> Any:
        return jnp.take(jnp.asarray(table), ids, axis=0)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)[:, 0]

    def joined(self, parts: Sequence[Any]) -> Any:
        return jnp.concatenate(list(parts), 0)

    def along(self, parts: Sequence[Any]) -> Any:
        return jnp.concatenate(list(parts), 1)

    def softmax(self, x: Any) -> Any:
        return jax.nn.softmax(x)

    def pair(self, left: Any, right: Any) -> Any:
        return jnp.concatenate([left, right], 1)

    def quarters(self, x: Any) -> Sequence[Any]:
        return jnp.split(x, 4, 1)

    def zeros(self, *shape: int) -> Any:
        return jnp.zeros(shape, self._dtype)
