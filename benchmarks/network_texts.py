"""The networks of examples/ once more, as functions of parameters, for frameworks that derive functions: PyTorch and JAX.

A text takes ``f``, a framework's functions (network_torch.py, network_jax.py), ``p``, parameters by the names of the variables in
the TensorFlow program, what that program is fed, both as ``f`` made them, and its sizes; it returns the losses.
Nothing is shared with examples/, so that the two can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["TEXTS"]

Parameters = Mapping[str, Any]


def _conv(f: Any, p: Parameters, x: Any, name: str, stride: int = 1, padding: str = "SAME") -> Any:
    return f.relu(f.conv(x, p[f"{name}/weights"], p[f"{name}/biases"], stride, padding))


def _affine(f: Any, p: Parameters, x: Any, name: str) -> Any:
    return x @ p[f"{name}/weights"] + p[f"{name}/biases"]


def _head(f: Any, p: Parameters, x: Any, labels: Any, *names: str) -> list[Any]:
    """Layers over all that an example has, rectified but for the last, and their loss."""
    x = f.flat(x)
    for name in names[:-1]:
        x = f.relu(_affine(f, p, x, name))
    return [f.mean(f.cross_entropy(_affine(f, p, x, names[-1]), labels))]


def alexnet(f: Any, p: Parameters, images: Any, labels: Any, **_: Any) -> list[Any]:
    x = f.max_pool(_conv(f, p, images, "conv1", 4, "VALID"), 3, 2, "VALID")
    x = f.max_pool(_conv(f, p, x, "conv2"), 3, 2, "VALID")
    for name in ("conv3", "conv4", "conv5"):
        x = _conv(f, p, x, name)
    return _head(f, p, f.max_pool(x, 3, 2, "VALID"), labels, "fc6", "fc7", "fc8")


def overfeat(f: Any, p: Parameters, images: Any, labels: Any, **_: Any) -> list[Any]:
    x = f.max_pool(_conv(f, p, images, "conv1", 4, "VALID"), 2, 2, "VALID")
    x = f.max_pool(_conv(f, p, x, "conv2", 1, "VALID"), 2, 2, "VALID")
    for name in ("conv3", "conv4", "conv5"):
        x = _conv(f, p, x, name)
    return _head(f, p, f.max_pool(x, 2, 2, "VALID"), labels, "fc6", "fc7", "fc8")


def vgg(f: Any, p: Parameters, images: Any, labels: Any, **_: Any) -> list[Any]:
    x = images
    for group in ("1_1", None, "2_1", None, "3_1", "3_2", None, "4_1", "4_2", None, "5_1", "5_2", None):
        x = f.max_pool(x, 2, 2, "VALID") if group is None else _conv(f, p, x, f"conv{group}")
    return _head(f, p, x, labels, "fc6", "fc7", "fc8")


def googlenet(f: Any, p: Parameters, images: Any, labels: Any, **_: Any) -> list[Any]:
    x = f.max_pool(_conv(f, p, images, "conv1", 2), 3, 2, "SAME")
    x = f.max_pool(_conv(f, p, _conv(f, p, x, "conv2_reduce"), "conv2"), 3, 2, "SAME")
    for module in ("3a", "3b", "pool", "4a", "4b", "4c", "4d", "4e", "pool", "5a", "5b"):
        if module == "pool":
            x = f.max_pool(x, 3, 2, "SAME")
            continue
        name = f"inception_{module}"
        one = _conv(f, p, x, f"{name}/1x1")
        three = _conv(f, p, _conv(f, p, x, f"{name}/3x3_reduce"), f"{name}/3x3")
        five = _conv(f, p, _conv(f, p, x, f"{name}/5x5_reduce"), f"{name}/5x5")
        x = f.channels([one, three, five, _conv(f, p, f.max_pool(x, 3, 1, "SAME"), f"{name}/pool_proj")])
    return _head(f, p, f.whole_mean(x), labels, "fc")


def digits_cnn(f: Any, p: Parameters, images: Any, labels: Any, **_: Any) -> list[Any]:
    x = _conv(f, p, _conv(f, p, images, "conv1"), "conv2")
    return _head(f, p, f.max_pool(x, 2, 2, "VALID"), labels, "hidden", "logits")


def mlp(f: Any, p: Parameters, x: Any, labels: Any, **_: Any) -> list[Any]:
    return _head(f, p, x, labels, "hidden1", "hidden2", "logits")


def dcgan(f: Any, p: Parameters, images: Any, noise: Any, *, width: int, **_: Any) -> list[Any]:
    def normal(x: Any, name: str) -> Any:
        return f.batch_norm(x, p[f"{name}/gamma"], p[f"{name}/beta"], 1e-3)

    x = f.grid(_affine(f, p, noise, "generator/dense"), 2, 2, 2 * width)
    x = f.relu(normal(x, "generator/norm1"))
    x = f.relu(normal(f.twice(x, p["generator/up1/weights"]), "generator/norm2"))
    made = f.sigmoid(f.twice(x, p["generator/up2/weights"]))

    def judged(x: Any) -> Any:
        x = f.leaky_relu(f.conv(x, p["discriminator/down1/weights"], None, 2, "SAME"))
        x = f.leaky_relu(normal(f.conv(x, p["discriminator/down2/weights"], None, 2, "SAME"), "discriminator/norm"))
        return _affine(f, p, f.flat(x), "discriminator/dense")[:, 0]

    real, false = judged(images), judged(made)
    of_discriminator = f.mean(f.sigmoid_cross_entropy(real, 0.9)) + f.mean(f.sigmoid_cross_entropy(false, 0.0))
    return [of_discriminator, f.mean(f.sigmoid_cross_entropy(false, 1.0))]


def _dense(p: Parameters, x: Any, name: str) -> Any:
    return x @ p[f"{name}/w"] + p[f"{name}/b"]


def _norm(f: Any, p: Parameters, x: Any, name: str) -> Any:
    return f.layer_norm(x, p[f"{name}/g"], p[f"{name}/b"], 1e-5)


def _attention(f: Any, p: Parameters, x: Any, heads: int, name: str, causal: bool) -> Any:
    batch, length, width = x.shape
    q, k, v = f.permute(_dense(p, x, f"{name}/qkv").reshape(batch, length, 3, heads, width // heads), (2, 0, 3, 1, 4))
    y = f.permute(f.attention(q, k, v, causal), (0, 2, 1, 3)).reshape(batch, length, width)
    return _dense(p, y, f"{name}/out")


def encoder(f: Any, p: Parameters, tokens: Any, heads: int, layers: int) -> Any:
    x = _norm(f, p, f.rows(p["tokens"], tokens) + p["positions"], "norm")
    for n in range(layers):
        name = f"layer{n}"
        x = _norm(f, p, x + _attention(f, p, x, heads, f"{name}/attention", False), f"{name}/norm1")
        inner = f.gelu(_dense(p, x, f"{name}/up"))
        x = _norm(f, p, x + _dense(p, inner, f"{name}/down"), f"{name}/norm2")
    return x


def transformer(
    f: Any, p: Parameters, tokens: Any, targets: Any, weights: Any, *, heads: int, layers: int, **_: Any
) -> list[Any]:
    logits = _dense(p, encoder(f, p, tokens, heads, layers), "head/logits")
    each = f.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
    return [(each * weights.reshape(-1)).sum() / weights.sum()]


def minilm(f: Any, p: Parameters, tokens: Any, *, heads: int, layers: int, **_: Any) -> list[Any]:
    return [encoder(f, p, tokens, heads, layers)]


def gpt(f: Any, p: Parameters, window: Any, *, heads: int, layers: int, **_: Any) -> list[Any]:
    x = f.rows(p["gpt/tokens"], window[:, :-1]) + p["gpt/positions"]
    for n in range(layers):
        name = f"gpt/layer{n}"
        x = x + _attention(f, p, _norm(f, p, x, f"{name}/norm1"), heads, f"{name}/attention", True)
        x = x + _dense(p, f.gelu_tanh(_dense(p, _norm(f, p, x, f"{name}/norm2"), f"{name}/up")), f"{name}/down")
    logits = _norm(f, p, x, "gpt/norm") @ p["gpt/tokens"].T
    return [f.mean(f.cross_entropy(logits.reshape(-1, logits.shape[-1]), window[:, 1:].reshape(-1)))]


def sharded_embedding(
    f: Any, p: Parameters, user: Any, thing: Any, given: Any, *, shards: int, strategy: str, width: int, **_: Any
) -> list[Any]:
    def found(name: str, ids: Any) -> Any:
        parts = [p[f"{name}/part_{shard}"] for shard in range(shards)]
        if strategy == "div":
            return f.rows(f.joined(parts), ids)
        first = [sum(len(part) for part in parts[:shard]) for shard in range(shards)]
        return f.rows(f.joined(parts), f.integers(first)[ids % shards] + ids // shards)

    u, t = found("users", user), found("things", thing)
    error = (u[:, :width] * t[:, :width]).sum(1) + u[:, width] + t[:, width] - given
    return [f.mean(error * error)]


def lstm_lm(f: Any, p: Parameters, words: Any, targets: Any, *, layers: int, **_: Any) -> list[Any]:
    batch, steps = words.shape
    units = p["lstm0/kernel"].shape[1] // 4
    inputs = [f.rows(p["words"], words[:, step]) for step in range(steps)]
    for layer in range(layers):
        kernel, bias = p[f"lstm{layer}/kernel"], p[f"lstm{layer}/bias"]
        c = h = f.zeros(batch, units)
        for step in range(steps):
            i, j, forget, o = f.quarters(f.pair(inputs[step], h) @ kernel + bias)
            c = f.sigmoid(forget + 1.0) * c + f.sigmoid(i) * f.tanh(j)
            h = f.tanh(c) * f.sigmoid(o)
            inputs[step] = h
    logits = f.joined(inputs) @ p["softmax/w"] + p["softmax/b"]
    return [f.mean(f.cross_entropy(logits, targets.T.reshape(-1)))]


#: Name -> the text.
TEXTS: dict[str, Callable[..., list[Any]]] = {
    text.__name__: text
    for text in (
        alexnet,
        overfeat,
        vgg,
        googlenet,
        digits_cnn,
        mlp,
        dcgan,
        transformer,
        minilm,
        gpt,
        sharded_embedding,
        lstm_lm,
    )
}
