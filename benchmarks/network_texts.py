"""The networks of examples/ once more, as functions of parameters, for frameworks that derive functions: PyTorch and JAX.

A text takes ``f``, a framework's functions (network_torch.py, network_jax.py); ``p``, which gives a parameter for the name of the
variable in the TensorFlow program and its shape; what that program is fed; and its sizes. It returns the losses. Nothing is shared
with examples/, so that the two can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["TEXTS", "Parameters"]


class Parameters:
    """Parameters by name, of a framework.

    given: those that there are. make: makes one that there is not, of its name and shape; without it that is an error.
    """

    def __init__(self, given: Mapping[str, Any], make: Callable[[str, tuple[int, ...]], Any] | None = None) -> None:
        self.all = dict(given)
        self._make = make

    def __call__(self, name: str, *shape: int) -> Any:
        if name not in self.all and self._make is not None:
            self.all[name] = self._make(name, shape)
        return self.all[name]


def _conv(
    f: Any, p: Parameters, x: Any, name: str, size: int, outputs: int, stride: int = 1, padding: str = "SAME"
) -> Any:
    w = p(f"{name}/weights", size, size, f.width(x), outputs)
    return f.relu(f.conv(x, w, p(f"{name}/biases", outputs), stride, padding))


def _affine(p: Parameters, x: Any, name: str, outputs: int) -> Any:
    return x @ p(f"{name}/weights", x.shape[1], outputs) + p(f"{name}/biases", outputs)


def _head(f: Any, p: Parameters, x: Any, labels: Any, **layers: int) -> list[Any]:
    """Layers over all that an example has, rectified but for the last, and their loss."""
    x = f.flat(x)
    *hidden, last = layers
    for name in hidden:
        x = f.relu(_affine(p, x, name, layers[name]))
    return [f.mean(f.cross_entropy(_affine(p, x, last, layers[last]), labels))]


def alexnet(
    f: Any, p: Parameters, images: Any, labels: Any, *, narrow: int = 1, classes: int = 1000, **_: Any
) -> list[Any]:
    x = f.max_pool(_conv(f, p, images, "conv1", 11, 64 // narrow, 4, "VALID"), 3, 2, "VALID")
    x = f.max_pool(_conv(f, p, x, "conv2", 5, 192 // narrow), 3, 2, "VALID")
    for name, outputs in (("conv3", 384), ("conv4", 256), ("conv5", 256)):
        x = _conv(f, p, x, name, 3, outputs // narrow)
    x = f.max_pool(x, 3, 2, "VALID")
    return _head(f, p, x, labels, fc6=4096 // narrow, fc7=4096 // narrow, fc8=classes)


def overfeat(
    f: Any, p: Parameters, images: Any, labels: Any, *, narrow: int = 1, classes: int = 1000, **_: Any
) -> list[Any]:
    x = f.max_pool(_conv(f, p, images, "conv1", 11, 96 // narrow, 4, "VALID"), 2, 2, "VALID")
    x = f.max_pool(_conv(f, p, x, "conv2", 5, 256 // narrow, 1, "VALID"), 2, 2, "VALID")
    for name, outputs in (("conv3", 512), ("conv4", 1024), ("conv5", 1024)):
        x = _conv(f, p, x, name, 3, outputs // narrow)
    x = f.max_pool(x, 2, 2, "VALID")
    return _head(f, p, x, labels, fc6=3072 // narrow, fc7=4096 // narrow, fc8=classes)


def vgg(
    f: Any, p: Parameters, images: Any, labels: Any, *, narrow: int = 1, classes: int = 1000, **_: Any
) -> list[Any]:
    x = images
    for group, outputs, layers in ((1, 64, 1), (2, 128, 1), (3, 256, 2), (4, 512, 2), (5, 512, 2)):
        for layer in range(layers):
            x = _conv(f, p, x, f"conv{group}_{layer + 1}", 3, outputs // narrow)
        x = f.max_pool(x, 2, 2, "VALID")
    return _head(f, p, x, labels, fc6=4096 // narrow, fc7=4096 // narrow, fc8=classes)


_INCEPTION = """
3a 64 96 128 16 32 32, 3b 128 128 192 32 96 64, pool, 4a 192 96 208 16 48 64, 4b 160 112 224 24 64 64, 4c 128 128 256 24 64 64,
4d 112 144 288 32 64 64, 4e 256 160 320 32 128 128, pool, 5a 256 160 320 32 128 128, 5b 384 192 384 48 128 128
"""


def googlenet(
    f: Any, p: Parameters, images: Any, labels: Any, *, narrow: int = 1, classes: int = 1000, **_: Any
) -> list[Any]:
    x = f.max_pool(_conv(f, p, images, "conv1", 7, 64 // narrow, 2), 3, 2, "SAME")
    x = _conv(f, p, _conv(f, p, x, "conv2_reduce", 1, 64 // narrow), "conv2", 3, 192 // narrow)
    x = f.max_pool(x, 3, 2, "SAME")
    for line in _INCEPTION.replace("\n", " ").split(","):
        module, *widths = line.split()
        if module == "pool":
            x = f.max_pool(x, 3, 2, "SAME")
            continue
        name = f"inception_{module}"
        n = [max(1, int(width) // narrow) for width in widths]
        one = _conv(f, p, x, f"{name}/1x1", 1, n[0])
        three = _conv(f, p, _conv(f, p, x, f"{name}/3x3_reduce", 1, n[1]), f"{name}/3x3", 3, n[2])
        five = _conv(f, p, _conv(f, p, x, f"{name}/5x5_reduce", 1, n[3]), f"{name}/5x5", 5, n[4])
        pooled = _conv(f, p, f.max_pool(x, 3, 1, "SAME"), f"{name}/pool_proj", 1, n[5])
        x = f.channels([one, three, five, pooled])
    return _head(f, p, f.whole_mean(x), labels, fc=classes)


_FIVES = "1x1 64; 1x1 48, 5x5 64; 1x1 64, 3x3 96, 3x3 96; mean, 1x1 {}"
_SEVENS = "1x1 192; 1x1 {0}, 1x7 {0}, 7x1 192; 1x1 {0}, 7x1 {0}, 1x7 {0}, 7x1 {0}, 1x7 192; mean, 1x1 192"
_FORKS = "1x1 320; 1x1 384, 1x3 384 + 3x1 384; 1x1 448, 3x3 384, 1x3 384 + 3x1 384; mean, 1x1 192"
_INCEPTION_V3 = {
    **{name: _FIVES.format(n) for name, n in (("5b", 32), ("5c", 64), ("5d", 64))},
    "6a": "3x3/2 384; 1x1 64, 3x3 96, 3x3/2 96; max",
    **{name: _SEVENS.format(n) for name, n in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192))},
    "7a": "1x1 192, 3x3/2 320; 1x1 192, 1x7 192, 7x1 192, 3x3/2 192; max",
    **dict.fromkeys(("7b", "7c"), _FORKS),
}


def inception_v3(
    f: Any, p: Parameters, images: Any, labels: Any, *, narrow: int = 1, classes: int = 1000, **_: Any
) -> list[Any]:
    def layer(x: Any, text: str, name: str, padding: str = "SAME") -> Any:
        if text == "max":
            return f.max_pool(x, 3, 2, "VALID")
        if text == "mean":
            return f.means_of_nine(x)
        window, outputs = text.replace("/2", "").split()
        height, width = map(int, window.split("x"))
        stride, padding = (2, "VALID") if "/2" in text else (1, padding)
        n = max(1, int(outputs) // narrow)
        y = f.conv(x, p(f"{name}/weights", height, width, f.width(x), n), None, stride, padding)
        return f.relu(f.batch_norm(y, None, p(f"{name}/beta", n), 1e-3))

    x = layer(layer(images, "3x3/2 32", "conv1"), "3x3 32", "conv2", "VALID")
    x = layer(f.max_pool(layer(x, "3x3 64", "conv3"), 3, 2, "VALID"), "1x1 80", "conv4", "VALID")
    x = f.max_pool(layer(x, "3x3 192", "conv5", "VALID"), 3, 2, "VALID")
    for module, branches in _INCEPTION_V3.items():
        ends = []
        for number, branch in enumerate(branches.split("; ")):
            y, (*texts, last) = x, branch.split(", ")
            for depth, text in enumerate(texts):
                y = layer(y, text, f"mixed_{module}/branch{number}_{depth}")
            for side, text in enumerate(last.split(" + ")):
                ends.append(layer(y, text, f"mixed_{module}/branch{number}_end{side}"))
        x = f.channels(ends)
    return _head(f, p, f.whole_mean(x), labels, fc=classes)


def digits_cnn(f: Any, p: Parameters, images: Any, labels: Any, *, width: int, **_: Any) -> list[Any]:
    x = _conv(f, p, _conv(f, p, images, "conv1", 3, width), "conv2", 3, 2 * width)
    return _head(f, p, f.max_pool(x, 2, 2, "VALID"), labels, hidden=4 * width, logits=10)


def mlp(f: Any, p: Parameters, x: Any, labels: Any, *, hidden: int, **_: Any) -> list[Any]:
    return _head(f, p, x, labels, hidden1=hidden, hidden2=hidden, logits=10)


def dcgan(f: Any, p: Parameters, images: Any, noise: Any, *, width: int, **_: Any) -> list[Any]:
    def normal(x: Any, name: str) -> Any:
        return f.batch_norm(x, p(f"{name}/gamma", f.width(x)), p(f"{name}/beta", f.width(x)), 1e-3)

    x = f.grid(_affine(p, noise, "generator/dense", 8 * width), 2, 2, 2 * width)
    x = f.relu(normal(x, "generator/norm1"))
    x = f.twice(x, p("generator/up1/weights", 3, 3, width, 2 * width))
    x = f.relu(normal(x, "generator/norm2"))
    made = f.sigmoid(f.twice(x, p("generator/up2/weights", 3, 3, 1, width)))

    def judged(x: Any) -> Any:
        x = f.leaky_relu(f.conv(x, p("discriminator/down1/weights", 3, 3, 1, width), None, 2, "SAME"))
        x = f.conv(x, p("discriminator/down2/weights", 3, 3, width, 2 * width), None, 2, "SAME")
        x = f.leaky_relu(normal(x, "discriminator/norm"))
        return _affine(p, f.flat(x), "discriminator/dense", 1)[:, 0]

    real, false = judged(images), judged(made)
    of_discriminator = f.mean(f.sigmoid_cross_entropy(real, 0.9)) + f.mean(f.sigmoid_cross_entropy(false, 0.0))
    return [of_discriminator, f.mean(f.sigmoid_cross_entropy(false, 1.0))]


def _dense(p: Parameters, x: Any, name: str, outputs: int) -> Any:
    return x @ p(f"{name}/w", x.shape[-1], outputs) + p(f"{name}/b", outputs)


def _norm(f: Any, p: Parameters, x: Any, name: str) -> Any:
    return f.layer_norm(x, p(f"{name}/g", x.shape[-1]), p(f"{name}/b", x.shape[-1]), 1e-5)


def _attention(f: Any, p: Parameters, x: Any, heads: int, name: str, causal: bool) -> Any:
    batch, length, width = x.shape
    parts = _dense(p, x, f"{name}/qkv", 3 * width).reshape(batch, length, 3, heads, width // heads)
    q, k, v = f.permute(parts, (2, 0, 3, 1, 4))
    y = f.permute(f.attention(q, k, v, causal), (0, 2, 1, 3)).reshape(batch, length, width)
    return _dense(p, y, f"{name}/out", width)


def _encoder(f: Any, p: Parameters, tokens: Any, vocabulary: int, width: int, heads: int, layers: int) -> Any:
    x = _norm(f, p, f.rows(p("tokens", vocabulary, width), tokens) + p("positions", tokens.shape[1], width), "norm")
    for n in range(layers):
        name = f"layer{n}"
        x = _norm(f, p, x + _attention(f, p, x, heads, f"{name}/attention", False), f"{name}/norm1")
        inner = f.gelu(_dense(p, x, f"{name}/up", 4 * width))
        x = _norm(f, p, x + _dense(p, inner, f"{name}/down", width), f"{name}/norm2")
    return x


def transformer(
    f: Any, p: Parameters, tokens: Any, targets: Any, weights: Any, *, vocabulary: int, **sizes: Any
) -> list[Any]:
    x = _encoder(f, p, tokens, vocabulary, sizes["width"], sizes["heads"], sizes["layers"])
    logits = _dense(p, x, "head/logits", vocabulary)
    each = f.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1))
    return [(each * weights.reshape(-1)).sum() / weights.sum()]


def minilm(
    f: Any, p: Parameters, tokens: Any, *, vocabulary: int, width: int, heads: int, layers: int, **_: Any
) -> list[Any]:
    return [_encoder(f, p, tokens, vocabulary, width, heads, layers)]


def gpt(
    f: Any, p: Parameters, window: Any, *, vocabulary: int, width: int, heads: int, layers: int, **_: Any
) -> list[Any]:
    table = p("gpt/tokens", vocabulary, width)
    x = f.rows(table, window[:, :-1]) + p("gpt/positions", window.shape[1] - 1, width)
    for n in range(layers):
        name = f"gpt/layer{n}"
        x = x + _attention(f, p, _norm(f, p, x, f"{name}/norm1"), heads, f"{name}/attention", True)
        inner = f.gelu_tanh(_dense(p, _norm(f, p, x, f"{name}/norm2"), f"{name}/up", 4 * width))
        x = x + _dense(p, inner, f"{name}/down", width)
    logits = _norm(f, p, x, "gpt/norm") @ table.T
    return [f.mean(f.cross_entropy(logits.reshape(-1, vocabulary), window[:, 1:].reshape(-1)))]


def sharded_embedding(
    f: Any, p: Parameters, user: Any, thing: Any, given: Any, *, shards: int, **sizes: Any
) -> list[Any]:
    def found(name: str, ids: Any) -> Any:
        rows, extra = divmod(sizes[name], shards)
        counts = [rows + (shard < extra) for shard in range(shards)]
        parts = [p(f"{name}/part_{shard}", count, width + 1) for shard, count in enumerate(counts)]
        if sizes["strategy"] == "div":
            return f.rows(f.joined(parts), ids)
        first = [sum(counts[:shard]) for shard in range(shards)]
        return f.rows(f.joined(parts), f.integers(first)[ids % shards] + ids // shards)

    width = sizes["width"]
    u, t = found("users", user), found("things", thing)
    error = (u[:, :width] * t[:, :width]).sum(1) + u[:, width] + t[:, width] - given
    return [f.mean(error * error)]


def _gru(f: Any, p: Parameters, x: Any, h: Any, name: str) -> Any:
    units = h.shape[1]
    both = f.sigmoid(
        f.pair(x, h) @ p(f"{name}/gates/kernel", x.shape[1] + units, 2 * units) + p(f"{name}/gates/bias", 2 * units)
    )
    r, u = both[:, :units], both[:, units:]
    kernel = p(f"{name}/candidate/kernel", x.shape[1] + units, units)
    return u * h + (1.0 - u) * f.tanh(f.pair(x, r * h) @ kernel + p(f"{name}/candidate/bias", units))


def seq2seq(
    f: Any, p: Parameters, source: Any, lengths: Any, target: Any, *, vocabulary: int, units: int, **_: Any
) -> list[Any]:
    batch, steps = source.shape
    table, h = p("words", vocabulary, units), f.zeros(batch, units)
    live = 1.0 * (f.integers(range(steps + 1))[None] < lengths[:, None])
    rows = []
    for step in range(steps):
        here = live[:, step : step + 1]
        after = _gru(f, p, f.rows(table, source[:, step]), h, "encoder/rnn/gru_cell")
        rows.append((here * after)[:, None])
        h = here * after + (1.0 - here) * h
    memory = f.along(rows)
    keys = memory @ p("memory_layer/kernel", units, units)
    attention, read, total = f.zeros(batch, units), f.integers([0] * batch), 0.0
    around = "decoder/attention_wrapper"
    for step in range(steps + 1):
        h = _gru(f, p, f.pair(f.rows(table, read), attention), h, f"{around}/gru_cell")
        scores = (keys * h[:, None]).sum(2) - 1e30 * (1.0 - live[:, :steps])
        context = (memory * f.softmax(scores)[:, :, None]).sum(1)
        attention = f.pair(h, context) @ p(f"{around}/attention_layer/kernel", 2 * units, units)
        logits = attention @ p("decoder/words_of/kernel", units, vocabulary) + p("decoder/words_of/bias", vocabulary)
        counted = 1.0 * (step < lengths + 1)
        total = total + (f.cross_entropy(logits, target[:, step]) * counted).sum()
        read = target[:, step]
    return [total / (lengths + 1).sum()]


def tree_lstm(f: Any, p: Parameters, *fed: Any, vocabulary: int, width: int, units: int, **_: Any) -> list[Any]:
    """Node after node, each by itself."""
    words, owners, left, right, ends, roots, labels = fed
    table, states = p("embedding", vocabulary, width), []
    for word in range(words.shape[0]):
        x = f.rows(table, words[word : word + 1])
        gates = x @ p("leaf/kernel", width, 3 * units) + p("leaf/bias", 3 * units)
        i, o, u = (gates[:, k * units : (k + 1) * units] for k in range(3))
        c = f.sigmoid(i) * f.tanh(u)
        states.append((c, f.sigmoid(o) * f.tanh(c)))
    for node in range(int(ends[-1])):
        (c1, h1), (c2, h2) = states[int(left[node])], states[int(right[node])]
        gates = f.pair(h1, h2) @ p("inner/kernel", 2 * units, 5 * units) + p("inner/bias", 5 * units)
        i, f1, f2, o, u = (gates[:, k * units : (k + 1) * units] for k in range(5))
        c = f.sigmoid(i) * f.tanh(u) + f.sigmoid(f1 + 1.0) * c1 + f.sigmoid(f2 + 1.0) * c2
        states.append((c, f.sigmoid(o) * f.tanh(c)))
    found = f.joined([states[int(root)][1] for root in roots])
    bag = f.rows(p("bag/words", vocabulary, 2), words)
    bags = f.joined([bag[owners == tree].sum(0)[None] for tree in range(len(roots))])
    logits = found @ p("logits/kernel", units, 2) + p("logits/bias", 2)
    return [f.mean(f.cross_entropy(each, labels)) for each in (logits, bags)]


def lstm_lm(
    f: Any, p: Parameters, words: Any, targets: Any, *drawn: Any, vocabulary: int, units: int, layers: int, **_: Any
) -> list[Any]:
    batch, steps = words.shape
    table = p("words", vocabulary, units)
    inputs = [f.rows(table, words[:, step]) for step in range(steps)]
    for layer in range(layers):
        name = f"rnn/multi_rnn_cell/cell_{layer}/basic_lstm_cell"
        kernel, bias = p(f"{name}/kernel", 2 * units, 4 * units), p(f"{name}/bias", 4 * units)
        c = h = f.zeros(batch, units)
        for step in range(steps):
            i, j, forget, o = f.quarters(f.pair(inputs[step], h) @ kernel + bias)
            c = f.sigmoid(forget + 1.0) * c + f.sigmoid(i) * f.tanh(j)
            h = f.tanh(c) * f.sigmoid(o)
            inputs[step] = h
    known, labels = f.joined(inputs), targets.T.reshape(-1)
    w, b = p("softmax/w", vocabulary, units), p("softmax/b", vocabulary)
    if not drawn:
        return [f.mean(f.cross_entropy(known @ w.T + b, labels))]
    classes, expected, expected_drawn = drawn  # of the true classes row by row of the batch
    true = (known * f.rows(w, labels)).sum(1) + b[labels] - f.log(expected.reshape(batch, steps).T.reshape(-1))
    others = known @ f.rows(w, classes).T + b[classes] - f.log(expected_drawn)
    others = others - 1e30 * (labels[:, None] == classes)
    return [f.mean(f.cross_entropy(f.pair(true[:, None], others), f.integers([0] * (batch * steps))))]


def word2vec(
    f: Any, p: Parameters, words: Any, near: Any, *drawn: Any, vocabulary: int, width: int, **_: Any
) -> list[Any]:
    classes, expected, expected_drawn = drawn
    seen = f.rows(p("vectors", vocabulary, width), words)
    w, b = p("nce/w", vocabulary, width), p("nce/b", vocabulary)
    true = (seen[:, None] * f.rows(w, near)).sum(2) + b[near] - f.log(expected)
    false = seen @ f.rows(w, classes).T + b[classes] - f.log(expected_drawn)
    return [f.mean(f.sigmoid_cross_entropy(true, 1.0).sum(1) + f.sigmoid_cross_entropy(false, 0.0).sum(1))]


#: Name -> the text.
TEXTS: dict[str, Callable[..., list[Any]]] = {
    text.__name__: text
    for text in (
        alexnet,
        overfeat,
        vgg,
        googlenet,
        inception_v3,
        digits_cnn,
        mlp,
        dcgan,
        transformer,
        minilm,
        gpt,
        sharded_embedding,
        seq2seq,
        tree_lstm,
        lstm_lm,
        word2vec,
    )
}
