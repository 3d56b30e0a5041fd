"""PyTorch's functions for network_texts.py.

    python -m benchmarks.network_torch FOLDER...

computes losses and gradients of a text per folder, for tests that compare graphdock with a PyTorch of another interpreter:
``request.json`` names the ``network`` and its ``sizes``; ``values.npz`` holds ``parameter/NAME`` and ``fed/NUMBER``; it writes
``results.npz``, with ``loss/NUMBER`` and ``gradient/NUMBER/NAME`` in the layout of the parameters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.network_texts import TEXTS, Parameters

__all__ = ["Torch", "main"]


def _before_and_after(size: int, window: int, stride: int, padding: str) -> tuple[int, int]:
    needed = max(0, (-(-size // stride) - 1) * stride + window - size) if padding == "SAME" else 0
    return needed // 2, needed - needed // 2


class Torch:
    """Functions over NCHW.

    last: images and filters lie in memory with the channels last. device: of parameters, and of what a text makes by itself.

    Attributes:
      narrow: dtype of zeros that a text makes; None is float32.
    """

    relu, sigmoid, tanh = staticmethod(torch.relu), staticmethod(torch.sigmoid), staticmethod(torch.tanh)
    mean, permute, log = staticmethod(torch.mean), staticmethod(torch.permute), staticmethod(torch.log)
    gelu = staticmethod(functional.gelu)

    def __init__(self, last: bool = False, device: Any = None) -> None:
        self._form = torch.channels_last if last else torch.contiguous_format
        self._device = device
        self.narrow: Any = None

    def parameter(self, value: np.ndarray) -> Any:
        """A leaf; filters [h, w, in, out] become [out, in, h, w]."""
        if value.ndim == 4:
            filters = torch.tensor(value.transpose(3, 2, 0, 1), device=self._device)
            return filters.contiguous(memory_format=self._form).requires_grad_()
        return torch.tensor(value, device=self._device).requires_grad_()

    def fed(self, value: np.ndarray) -> Any:
        """Images [N, h, w, c] become [N, c, h, w]; ids become int64."""
        if value.ndim == 4:
            return torch.tensor(value.transpose(0, 3, 1, 2)).contiguous(memory_format=self._form)
        return torch.tensor(value.astype(np.int64) if value.dtype == np.int32 else value)

    def width(self, x: Any) -> int:
        return int(x.shape[1])

    def conv(self, x: Any, w: Any, b: Any, stride: int, padding: str) -> Any:
        tall, wide = (_before_and_after(x.shape[i], w.shape[i], stride, padding) for i in (2, 3))
        if tall[0] != tall[1] or wide[0] != wide[1]:
            x, tall, wide = functional.pad(x, (*wide, *tall)), (0, 0), (0, 0)
        return functional.conv2d(x, w, b, stride, (tall[0], wide[0]))

    def twice(self, x: Any, w: Any) -> Any:
        return functional.conv_transpose2d(x, w, stride=2)[:, :, : 2 * x.shape[2], : 2 * x.shape[3]]

    def max_pool(self, x: Any, window: int, stride: int, padding: str) -> Any:
        low, high = _before_and_after(x.shape[2], window, stride, padding)
        if low != high:
            x, low = functional.pad(x, (low, high, low, high), value=-torch.inf), 0
        return functional.max_pool2d(x, window, stride, low)

    def means_of_nine(self, x: Any) -> Any:
        return functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False)

    def whole_mean(self, x: Any) -> Any:
        return x.mean((2, 3), keepdim=True)

    def channels(self, parts: Sequence[Any]) -> Any:
        return torch.cat(list(parts), 1)

    def flat(self, x: Any) -> Any:
        return (x.permute(0, 2, 3, 1) if x.ndim == 4 else x).reshape(len(x), -1)

    def grid(self, x: Any, height: int, width: int, channels: int) -> Any:
        return x.reshape(-1, height, width, channels).permute(0, 3, 1, 2)

    def batch_norm(self, x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
        return functional.batch_norm(x, None, None, gamma, beta, training=True, eps=epsilon)

    def layer_norm(self, x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
        return functional.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)

    def leaky_relu(self, x: Any) -> Any:
        return functional.leaky_relu(x, 0.2)

    def gelu_tanh(self, x: Any) -> Any:
        return functional.gelu(x, approximate="tanh")

    def attention(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def rows(self, table: Any, ids: Any) -> Any:
        return functional.embedding(ids, table)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return functional.cross_entropy(logits, labels, reduction="none")

    def sigmoid_cross_entropy(self, logits: Any, label: float) -> Any:
        target = torch.full_like(logits, label)
        return functional.binary_cross_entropy_with_logits(logits, target, reduction="none")

    def joined(self, parts: Sequence[Any]) -> Any:
        return torch.cat(list(parts), 0)

    def softmax(self, x: Any) -> Any:
        return torch.softmax(x, -1)

    def along(self, parts: Sequence[Any]) -> Any:
        return torch.cat(list(parts), 1)

    def pair(self, left: Any, right: Any) -> Any:
        return torch.cat([left, right], 1)

    def quarters(self, x: Any) -> Sequence[Any]:
        return x.chunk(4, 1)

    def zeros(self, *shape: int) -> Any:
        return torch.zeros(shape, device=self._device, dtype=self.narrow)

    def integers(self, values: Sequence[int]) -> Any:
        return torch.tensor(values, device=self._device)


def _answer(folder: Path) -> None:
    asked: Mapping[str, Any] = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    f, found = Torch(), dict(np.load(folder / "values.npz"))
    parameters = {k.partition("/")[2]: f.parameter(v) for k, v in found.items() if k.startswith("parameter/")}
    fed = [f.fed(found[f"fed/{number}"]) for number in range(sum(k.startswith("fed/") for k in found))]
    losses = TEXTS[asked["network"]](f, Parameters(parameters), *fed, **asked["sizes"])
    out = {}
    for number, loss in enumerate(losses):
        out[f"loss/{number}"] = loss.detach().numpy()
        given = torch.autograd.grad(loss, list(parameters.values()), retain_graph=True, allow_unused=True)
        for (name, parameter), gradient in zip(parameters.items(), given, strict=True):
            whole = torch.zeros_like(parameter) if gradient is None else gradient
            out[f"gradient/{number}/{name}"] = (
                (whole.permute(2, 3, 1, 0) if whole.ndim == 4 else whole).detach().numpy()
            )
    np.savez(folder / "results.npz", **out)


def main(folders: Sequence[str]) -> None:
    """Answer the request in each folder."""
    for folder in folders:
        _answer(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
