"""Samples of patterns and what looks like them: each pattern's own function, of operands and with a change drawn at random.

Operands are of shapes that broadcast, of extreme magnitudes, and not finite; tables are masks or almost; numbers that stand in the
graph have other values; one operation has an attribute, a constant or the order of its operands changed, or one of its results is
fetched, or read by what has no gradient. A program that is made of a sample is the same for any floating dtype.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import graphdock as tf
import numpy as np
from graphdock.contracts import Pattern

WINDOWS = ("strides", "padding", "explicit_paddings", "dilations", "data_format")
#: What masks make of a score.
LOWS = (-1e9, -1e9, -1e4, -np.inf, -3.0, 0.0, -(2.0**32) + 1, np.nan)


@dataclass
class Sample:
    """What a pattern's function is given.

    Attributes:
      fed: name -> array of float64 (of numbers that ``dtype`` has), int or bool. ``open``: name -> leading dims that are unknown.
      constants: name -> likewise, of what stands in the graph. ``attrs``: other arguments.
      change: (which operation, what is done to it, a seed), or None. ``slopes``: names of what gradients are asked for.
      drawn: name -> shape of random numbers.
    """

    pattern: Pattern
    dtype: str
    seed: int
    fed: dict = field(default_factory=dict)
    open: dict = field(default_factory=dict)
    constants: dict = field(default_factory=dict)
    drawn: dict = field(default_factory=dict)
    attrs: dict = field(default_factory=dict)
    change: tuple | None = None
    slopes: tuple = ()

    def __str__(self):
        shown = {
            n: a.tolist() if a.size < 3 else f"{a.dtype}{list(a.shape)}"
            for n, a in {**self.fed, **self.constants}.items()
        }
        return f"{self.pattern.name} {self.dtype} seed {self.seed}: {shown} {self.attrs} {self.change} by {self.slopes}"

    def build(self, dtype):
        """Fetches and feeds in the default graph, of another floating dtype."""
        tensors, feeds = {}, {}
        for name, array in self.fed.items():
            wide = self.open[name]
            kind = self._dtype(name, dtype) if array.dtype.kind == "f" else array.dtype.name
            made = tf.placeholder(kind, (None,) * wide + array.shape[wide:], name=name)
            tensors[name], feeds[made] = made, array
        for name, array in self.constants.items():
            tensors[name] = tf.constant(
                array, self._dtype(name, dtype) if array.dtype.kind == "f" else array.dtype.name
            )
        for name, shape in self.drawn.items():
            tensors[name] = tf.random_uniform(shape, seed=5)
        graph = tf.get_default_graph()
        changing = Changing(graph, self.change)
        made = self.pattern.pattern(**{n: tensors[n] for n in self.pattern.inputs}, **self._typed(dtype))
        changing.end()
        values = list(made) if isinstance(made, tuple | list) else [made]
        sources = [tensors[n] for n in self.slopes]
        fetches = [*values, *changing.fetched]
        if sources:
            found = tf.gradients([tf.sin(v) if self.seed % 3 else v for v in values], sources)
            fetches += [g for g in found if g is not None]
        return fetches, feeds

    def _dtype(self, name, dtype):
        """Of an operand whose dtype the pattern names."""
        named = self.pattern.inputs[name].dtype or ""
        return named if name == "rate" else dtype if dtype == "float64" or "float" not in named else named

    def _typed(self, dtype):
        return {n: tf.as_dtype(v) if n == "Tlabels" else v for n, v in self.attrs.items()}


class Changing:
    """Changes one of the operations that are added to a graph, or notes its results."""

    def __init__(self, graph, change):
        self._graph, self._change, self._count, self._add = graph, change, 0, graph.add_op
        self.fetched = []
        if change is not None:
            graph.add_op = self._added

    def end(self):
        self._graph.__dict__.pop("add_op", None)

    def _added(self, op_def, inputs, attrs, *rest, **more):
        number, how, seed = self._change
        self._count += op_def.name != "Cast"  # of which other dtypes have others
        if op_def.name == "Cast" or self._count != number + 1:
            return self._add(op_def, inputs, attrs, *rest, **more)
        random, inputs, attrs = np.random.default_rng(seed), list(inputs), dict(attrs)
        if how == "operands" and len(inputs) > 1:
            inputs[0], inputs[1] = inputs[1], inputs[0]
        if how == "attribute":
            flags = [n for n, v in attrs.items() if isinstance(v, bool)]
            if flags:
                name = flags[random.integers(len(flags))]
                attrs[name] = not attrs[name]
        if how == "constant" and isinstance(attrs.get("value"), np.ndarray):
            value = attrs["value"]
            other = np.array(value)
            at = tuple(random.integers(0, n) for n in other.shape) if other.size else None
            if at is not None and other.dtype.kind == "b":
                other[at] = not other[at]
            elif at is not None:
                other[at] = (
                    other[at] + 1
                    if other.dtype.kind in "iu"
                    else other[at] * type(other[at])(random.choice([0, -1, 1.5, 1e3]))
                )
            attrs["value"] = other
        op = self._add(op_def, inputs, attrs, *rest, **more)
        if how == "fetch":
            self.fetched = [t for t in op.outputs if t.dtype.is_floating]
        if how == "stop" and op.type != "StopGradient" and len(op.outputs) == 1 and op.outputs[0].dtype.is_floating:
            self._graph.__dict__.pop("add_op", None)
            return tf.stop_gradient(op.outputs[0]).op
        return op


class Draw:
    """Draws samples of a pattern."""

    def __init__(self, pattern, seed):
        self.random = np.random.default_rng([seed, *pattern.name.encode()])
        self.dtype = str(self.random.choice(["float32", "float32", "float16", "bfloat16"]))
        if self.dtype not in pattern.dtypes:
            self.dtype = "float32"
        self.sample = Sample(pattern, self.dtype, seed)
        self.kind = self.random.choice(["plain", "plain", "large", "odd", "small"])

    def pick(self, *options):
        return options[self.random.integers(len(options))]

    def chance(self, p):
        return self.random.random() < p

    def size(self):
        return int(self.pick(1, 2, 3, 4, 5, 8) if self.chance(0.95) else 0)

    def numbers(self, shape, scale=1.0):
        made = self.random.standard_normal(shape) * scale
        if self.kind == "large":
            made *= float(self.pick(30.0, 300.0, 3e4))
        if self.kind == "small":
            made *= 1e-3
        if self.kind == "odd" and made.size and self.chance(0.5):
            places = self.random.random(shape) < 1.5 / made.size
            made = np.where(places, float(self.pick(np.inf, -np.inf, np.nan, 0.0, 6e4)), made)
        return self.rounded(made)

    def rounded(self, array):
        with np.errstate(over="ignore"):
            return np.asarray(array, np.float64).astype(tf.as_dtype(self.dtype).np).astype(np.float64)

    def feed(self, name, shape, array=None):
        self.sample.fed[name] = self.numbers(tuple(shape)) if array is None else array
        self.sample.open[name] = int(self.pick(0, 0, 1, len(shape))) if shape else 0

    def constant(self, name, array):
        self.sample.constants[name] = np.asarray(array)

    def number(self, name, *values):
        self.constant(name, self.rounded(float(self.pick(*values))))

    def stretched(self, shape):
        """A shape that broadcasts to another, mostly the same."""
        return tuple(1 if self.chance(0.12) else n for n in shape)

    def draw(self):
        inputs = self.sample.pattern.inputs
        makers = (("gamma", self._norm), ("labels", self._losses), ("query", self._attention), ("bias", self._product),
                  ("gates", self._gates), ("cos", self._rotary), ("a", self._late))  # fmt: skip
        next(make for name, make in makers if name in inputs)()
        if self.chance(0.4):
            how = self.pick("operands", "attribute", "constant", "constant", "fetch", "stop")
            self.sample.change = int(self.random.integers(0, 24)), how, int(self.random.integers(1 << 30))
        if not self.sample.pattern.late and self.chance(0.7):
            names = [n for n, a in self.sample.fed.items() if a.dtype.kind == "f" and n != "rate"]
            self.sample.slopes = tuple(n for n in names if self.chance(0.8))
        return self.sample

    def _shape(self, rank):
        return tuple(self.size() for _ in range(rank))

    def _norm(self):
        shape = self._shape(len(self.sample.pattern.inputs["x"].shape))
        self.feed("x", shape)
        for name in ("gamma", "beta"):
            if name in self.sample.pattern.inputs:
                self.feed(name, self.stretched(shape[-1:]))
        self.number("epsilon", 1e-5, 1e-3, 1e-12, 0.0, 1.0)

    def _product(self):
        inputs = self.sample.pattern.inputs
        if "input" in inputs:
            self._convolution()
            return
        m, k, n = self._shape(3)
        self.feed("a", (m, k))
        self.feed("b", (k, n))
        any_rank = "bias_add" not in self.sample.pattern.name
        shapes = [(n,), (n,), (n,), (1,)] + [(), (1, n), (m, 1), (1, 1), (2, 1, n)] * any_rank
        self.feed("bias", self.pick(*shapes))
        if "shape" in inputs:
            size = len(inputs["shape"].shape) and inputs["shape"].shape[0]
            self.constant(
                "shape", np.array(self.pick((m, 1, n), (1, m, n), (m, n, 1)) if size == 3 else (m, n), np.int32)
            )

    def _convolution(self):
        n, h, w, c, o = (max(self.size(), 1) for _ in range(5))
        layout = self.pick("NHWC", "NHWC", "NCHW")
        fh, fw = int(self.pick(1, 2, 3)), int(self.pick(1, 2, 3))
        if layout == "NCHW" and self.chance(0.5):
            o = w
        padding = self.pick("SAME", "VALID")
        self.feed("input", (n, h + 2, w + 2 if padding == "VALID" else w, c) if layout == "NHWC" else (n, c, h + 2, w))
        self.feed("filter", (fh, fw, c, o))
        self.feed(
            "bias", self.pick((o,), (o,), (1,), (), (1, o)) if "bias_add" not in self.sample.pattern.name else (o,)
        )
        step = int(self.pick(1, 1, 2))
        strides = (1, step, step, 1) if layout == "NHWC" else (1, 1, step, step)
        self.sample.attrs = dict(zip(WINDOWS, (strides, padding, (), (1,) * 4, layout), strict=True))

    def _gates(self):
        rows, units = self.size(), max(self.size(), 1)
        self.feed("gates", (rows, 4 * units))
        self.feed("c", self.stretched((rows, units)))
        if "forget_bias" in self.sample.pattern.inputs:
            self.number("forget_bias", 1.0, 0.0, -2.5)

    def _attention(self):
        inputs = self.sample.pattern.inputs
        rank = len(inputs["query"].shape)
        outer, (m, n) = self._shape(rank - 2), self._shape(2)
        n = m if self.chance(0.6) else n
        d, e = self.size(), self.size()
        for name, shape in (("query", (m, d)), ("key", (n, d)), ("value", (n, e))):
            self.feed(name, (*(self.stretched(outer) if self.chance(0.2) else outer), *shape))
        scores = (*outer, m, n)
        if "scale" in inputs:
            self.number("scale", 0.5, 0.125, 2.0, 1.0, 100.0, -1.0, 0.0)
        low, causal = float(self.pick(*LOWS)), np.tri(m, n, dtype=bool)
        for name, operand in inputs.items():
            if name in ("seen", "hidden", "bias") or (name == "low" and operand.shape):
                size = len(operand.shape)
                shape = self.stretched(scores[-size:])
                flags = (
                    causal
                    if self.chance(0.5) or (operand.constant and self.chance(0.5))
                    else self.random.random(shape) < 0.6
                )
                if size == 2 and self.chance(0.2) and flags.size:
                    flags = np.array(flags)
                    flags[self.random.integers(len(flags))] = False
                if name == "bias" and not operand.constant:
                    hides = self.chance(0.5)
                    self.feed(
                        name,
                        shape,
                        self.rounded(np.where(self.random.random(shape) < 0.5, low, 0.0)) if hides else None,
                    )
                elif operand.dtype == "bool":
                    flags = flags if name == "seen" else ~flags
                    if operand.constant:
                        self.constant(name, flags)
                    else:
                        self.feed(
                            name,
                            shape,
                            np.broadcast_to(flags, shape)
                            if flags.shape == scores[-2:] and size >= 2 and shape[-2:] == flags.shape
                            else self.random.random(shape) < 0.6,
                        )
                elif name == "seen":
                    self.constant(name, flags.astype(np.float64))
                else:
                    low = -1e9 if not np.isfinite(low) and "seen" in inputs else low
                    flags = self.sample.constants["seen"] > 0 if "seen" in self.sample.constants else flags
                    table = np.where(flags, 0.0, low)
                    self.constant(name, self.rounded(-table if "seen" in inputs else table))
        if "low" in inputs and not inputs["low"].shape:
            self.constant("low", self.rounded(low))
        if "draws" in inputs:
            self.sample.drawn["draws"] = scores
            rate = float(self.pick(0.0, 0.3, 0.9))
            self.feed("rate", (), np.asarray(rate))
            self.constant("factor", self.rounded(1 / (1 - rate)))

    def _rotary(self):
        inputs = self.sample.pattern.inputs
        rank, angles = len(inputs["x"].shape), len(inputs["cos"].shape)
        *outer, positions, half = self._shape(rank)
        if self.chance(0.5):
            outer = [int(self.pick(1, positions))] * len(outer)
        shape = (*outer, positions, 2 * half)
        self.feed("x", shape)
        width = 2 * half if inputs["cos"].constant else half
        places = [1] * (rank - 1)
        place = self.pick(rank - 2, rank - 2, rank - 3)
        places[place] = shape[place]
        if self.chance(0.2):
            places = list(shape[:-1])
        of = (*places, width)[-angles:]
        for name in ("cos", "sin"):
            dims = self.stretched(of) if self.chance(0.2) else of
            table = self.numbers(dims)
            if inputs["cos"].constant:
                if self.chance(0.8):
                    table = np.concatenate([table[..., : (dims[-1] + 1) // 2]] * 2, -1)[..., : dims[-1]]
                self.constant(name, table)
            else:
                self.feed(name, dims, table)
        if "shape" in inputs:
            self.constant("shape", np.array(self._cut(shape), np.int32))
        if "cut" in inputs:
            self.constant(
                "cut",
                np.array(
                    (*self._cut(shape[:-1]), half, 2) if self.chance(0.9) else self._cut((*shape[:-1], half, 2)),
                    np.int32,
                ),
            )

    def _cut(self, shape):
        """The shape, or one of as many elements."""
        if self.chance(0.75):
            return shape
        return tuple(self.random.permutation(shape).tolist())

    def _losses(self):
        pattern = self.sample.pattern
        inputs = pattern.inputs
        if "w" in inputs:
            self._linear()
            return
        rank = len(inputs["features"].shape)
        shape = (*self._shape(rank - 1), max(self.size(), 1))
        self.feed("features", shape)
        if inputs["labels"].dtype:
            self.feed(
                "labels", shape[:-1], self.random.integers(0, shape[-1], shape[:-1]).astype(inputs["labels"].dtype)
            )
        else:
            self.feed("labels", shape)
        self.feed("column", (*self.stretched(shape[:-1]), 1))

    def _linear(self):
        pattern = self.sample.pattern
        inputs = pattern.inputs
        rank, narrow = len(inputs["labels"].shape), inputs["x"].dtype
        if narrow:
            self.dtype = narrow  # of numbers; that of the loss is the sample's
        batch, steps, inner, classes = (max(n, 1) for n in self._shape(4))
        rows = batch * steps
        self.feed("x", (rows, inner))
        self.feed("w", (classes, inner) if "turned" in pattern.name else (inner, classes))
        if "bias" in inputs:
            self.feed("bias", (classes,) if "bias_add" in pattern.name or self.chance(0.8) else (1,))
        dims = (rows,) if rank == 1 else (batch, max(steps - ("_next" in pattern.name), 0))
        self.feed("labels", dims, self.random.integers(0, classes, dims).astype(np.int32))
        for name in ("cut", "there", "shape"):
            if name in inputs:
                wide = inputs[name].shape[0] == 3
                self.constant(name, np.array((batch, steps, classes) if wide else (rows, classes), np.int32))
        self.sample.attrs = {"Tlabels": "int32"}

    def _late(self):
        m, k, n = self._shape(3)
        inputs = self.sample.pattern.inputs
        if "x" not in inputs:
            self.feed("a", (k, m))
            self.feed("b", (k, n))
            return
        self.feed("a", (m, k))
        self.feed("b", (n, k))
        self.feed("x", (m, n) if self.chance(0.8) else (n, m))
        if "cut" in inputs:
            self.constant("cut", np.array((1, m, n), np.int32))
            self.constant("shape", np.array(self.sample.fed["x"].shape, np.int32))


def draw(pattern, seed):
    """The sample of a pattern and a number."""
    return Draw(pattern, seed).draw()
