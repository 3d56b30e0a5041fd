"""The convolutions of AlexNet, VGG-A and GoogLeNet: forward and both gradients of each layer, and their sum by net.

Layers are of Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014 (batch 16), Simonyan and
Zisserman, "Very deep convolutional networks", 2014, net A (batch 4), and Szegedy and others, "Going deeper with convolutions",
2014 (batch 8). Layers of one shape are timed once and counted as often as they occur. The gradient to the input of a first layer
is left out, as in training. PyTorch gets its tensors with channels last, which is what the others have.

    python -m benchmarks.convolution --programs vgg --rounds 3
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.cli import parse, publish, wanted
from benchmarks.frameworks import ONEDNN, session_builders
from benchmarks.harness import Outcome, run_program
from benchmarks.machine import load_average
from benchmarks.process import Workers
from benchmarks.program import Case, Program

__all__ = ["NETS", "PROGRAMS", "Layer", "main"]


@dataclass(frozen=True)
class Layer:
    """A convolution with padding SAME, or VALID where it is ``valid``; ``times``: how many layers of the net have this shape."""

    size: int
    window: int
    channels: int
    outputs: int
    times: int = 1
    stride: int = 1
    valid: bool = False
    first: bool = False

    @property
    def out(self) -> int:
        return (self.size - self.window) // self.stride + 1 if self.valid else -(-self.size // self.stride)

    def __str__(self) -> str:
        step = f"/{self.stride}" if self.stride > 1 else ""
        return f"{self.size}x{self.size} {self.channels}-{self.outputs} {self.window}x{self.window}{step}"


@dataclass(frozen=True)
class Net:
    """``at_most``: what graphdock may take of TensorFlow's time, in the sum."""

    name: str
    batch: int
    at_most: float
    layers: tuple[Layer, ...]


def _inception(size: int, channels: int, one: int, *branches: int) -> list[tuple[int, int, int, int]]:
    """The six convolutions of a module: size, window, channels, outputs."""
    small3, three, small5, five, pooled = branches
    return [
        (size, 1, channels, one),
        (size, 1, channels, small3),
        (size, 3, small3, three),
        (size, 1, channels, small5),
        (size, 5, small5, five),
        (size, 1, channels, pooled),
    ]


def _googlenet() -> tuple[Layer, ...]:
    counted: dict[tuple[int, int, int, int], int] = {(56, 1, 64, 64): 1, (56, 3, 64, 192): 1}
    for module in (
        (28, 192, 64, 96, 128, 16, 32, 32),
        (28, 256, 128, 128, 192, 32, 96, 64),
        (14, 480, 192, 96, 208, 16, 48, 64),
        (14, 512, 160, 112, 224, 24, 64, 64),
        (14, 512, 128, 128, 256, 24, 64, 64),
        (14, 512, 112, 144, 288, 32, 64, 64),
        (14, 528, 256, 160, 320, 32, 128, 128),
        (7, 832, 256, 160, 320, 32, 128, 128),
        (7, 832, 384, 192, 384, 48, 128, 128),
    ):
        for layer in _inception(*module):
            counted[layer] = counted.get(layer, 0) + 1
    return (Layer(224, 7, 3, 64, stride=2, first=True), *(Layer(*facts, times) for facts, times in counted.items()))


NETS = (
    Net(
        "alexnet",
        16,
        1.4,
        (
            Layer(227, 11, 3, 64, stride=4, valid=True, first=True),
            Layer(27, 5, 64, 192),
            Layer(13, 3, 192, 384),
            Layer(13, 3, 384, 256),
            Layer(13, 3, 256, 256),
        ),
    ),
    Net(
        "vgg",
        4,
        1.1,
        (
            Layer(224, 3, 3, 64, first=True),
            Layer(112, 3, 64, 128),
            Layer(56, 3, 128, 256),
            Layer(56, 3, 256, 256),
            Layer(28, 3, 256, 512),
            Layer(28, 3, 512, 512),
            Layer(14, 3, 512, 512, times=2),
        ),
    ),
    Net("googlenet", 8, 1.6, _googlenet()),
)

#: Part of TensorFlow's time, in the sum, that graphdock may take where oneDNN computes.
BY_ONEDNN = 1.05
DIRECTIONS = ("forward", "input", "filter")


def _data(batch: int, layer: Layer) -> tuple[Any, Any, Any]:
    """Input, filter, and gradients of the output."""
    import numpy as np

    random = np.random.RandomState(7)
    x = (batch, layer.size, layer.size, layer.channels)
    w = (layer.window, layer.window, layer.channels, layer.outputs)
    dy = (batch, layer.out, layer.out, layer.outputs)
    return tuple(random.normal(size=shape).astype("float32") for shape in (x, w, dy))  # type: ignore[return-value]


def in_session(tf: ModuleType, open_session: Callable[[], Any], batch: int, layer: Layer, direction: str) -> Case:
    """One convolution or gradient of variables; its result is computed and not fetched."""
    arrays = _data(batch, layer)
    shapes = [a.shape for a in arrays]
    holders = [tf.placeholder(tf.float32, shape) for shape in shapes]
    variables = [tf.Variable(holder, trainable=False) for holder in holders]
    x, w, dy = variables
    window = {"strides": [1, layer.stride, layer.stride, 1], "padding": "VALID" if layer.valid else "SAME"}
    if direction == "forward":
        y = tf.nn.conv2d(x, w, **window)
    elif direction == "input":
        y = tf.nn.conv2d_backprop_input(shapes[0], w, dy, **window)
    else:
        y = tf.nn.conv2d_backprop_filter(x, shapes[1], dy, **window)
    session = open_session()
    session.run(tf.global_variables_initializer(), dict(zip(holders, arrays, strict=True)))
    return Case(lambda: session.run(y.op), lambda: [session.run(y)])


def in_torch(batch: int, layer: Layer, direction: str) -> Case:
    """The same by aten's functions, in channels_last."""
    import torch

    def last(array: Any, axes: tuple[int, ...]) -> Any:
        return torch.from_numpy(array.transpose(axes)).contiguous(memory_format=torch.channels_last)

    arrays = _data(batch, layer)
    x, w, dy = (last(a, axes) for a, axes in zip(arrays, ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)), strict=True))
    needed = 0 if layer.valid else max(0, (layer.out - 1) * layer.stride + layer.window - layer.size)
    odd = needed % 2
    if odd:  # TensorFlow's odd zero is at the end, for which torch pads an array of its own
        x = torch.nn.functional.pad(x, (0, 1, 0, 1)).contiguous(memory_format=torch.channels_last)
    steps, pads = [layer.stride] * 2, [needed // 2] * 2
    mask = [direction == "input", direction == "filter", False]

    def call() -> Any:
        with torch.no_grad():
            if direction == "forward":
                return torch.ops.aten.convolution(x, w, None, steps, pads, [1, 1], False, [0, 0], 1)
            found = torch.ops.aten.convolution_backward(dy, x, w, None, steps, pads, [1, 1], False, [0, 0], 1, mask)
            return found[mask.index(True)]

    def values() -> list[Any]:
        result = call()
        if direction == "filter":
            return [result.permute(2, 3, 1, 0).numpy()]
        return [result.permute(0, 2, 3, 1)[:, : layer.size, : layer.size].numpy()]

    return Case(call, values)


def _program(net: Net, layer: Layer, direction: str) -> Program:
    text = partial(in_session, batch=net.batch, layer=layer, direction=direction)
    builders = {**session_builders(text, [ONEDNN]), "torch": partial(in_torch, net.batch, layer, direction)}
    return Program(
        f"{net.name} {layer} {direction}", str(layer), builders, reference="tensorflow", rtol=1e-3, atol=2e-2
    )


def _programs(net: Net) -> dict[tuple[Layer, str], Program]:
    return {
        (layer, direction): _program(net, layer, direction)
        for layer in net.layers
        for direction in DIRECTIONS
        if not (layer.first and direction == "input")
    }


_BY_NET = {net.name: _programs(net) for net in NETS}
PROGRAMS = tuple(program for programs in _BY_NET.values() for program in programs.values())


def _line(name: str, times: dict[str, float]) -> str:
    mine = times.get("graphdock")
    parts = [f"{name:42}"]
    for subject, seconds in times.items():
        ratio = f" ({mine / seconds:5.2f})" if mine is not None and subject != "graphdock" else ""
        parts.append(f"{subject} {seconds * 1e3:8.2f} ms{ratio}")
    return "  ".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Print every layer, then the sums; ratios are graphdock's time by the subject's. Exit 1 on a fault, with --strict on a
    missed bar too.
    """
    options = parse("convolution", [net.name for net in NETS], arguments, rounds=3, seconds=0.1)
    before = load_average()
    outcomes: list[Outcome] = []
    missed = False
    subjects = dict.fromkeys(subject for program in PROGRAMS for subject in program.builders)
    with Workers(subjects, wanted(options.peers)) as workers:
        for net in NETS:
            if net.name not in options.programs:
                continue
            sums: dict[str, float] = {}
            least: dict[str, float] = {}
            for (layer, direction), program in _BY_NET[net.name].items():
                outcome = run_program(
                    program, "benchmarks.convolution", workers, options.rounds, options.seconds, pause=options.pause
                )
                outcomes.append(outcome)
                times = {subject: timing.median for subject, timing in outcome.timings.items()}
                print(_line(f"{layer} {direction}" + f" x{layer.times}" * (layer.times > 1), times), flush=True)
                for subject, timing in outcome.timings.items():
                    sums[subject] = sums.get(subject, 0.0) + layer.times * timing.median
                    least[subject] = least.get(subject, 0.0) + layer.times * timing.minimum
            print(_line(f"{net.name}, sum of medians", sums))
            print(_line(f"{net.name}, sum of minima", least))
            for subject, at_most in (("graphdock", net.at_most), (f"graphdock/{ONEDNN[0]}", BY_ONEDNN)):
                if {subject, "tensorflow"} <= sums.keys():
                    ratio = sums[subject] / sums["tensorflow"]
                    missed |= ratio > at_most
                    verdict = "pass" if ratio <= at_most else "MISS"
                    print(
                        f"  {subject} at most {at_most:g} of tensorflow in the sum of {net.name}: {ratio:.3f}  {verdict}"
                    )
            print()
    status = publish("convolution", outcomes, options, (before, load_average()))
    return 1 if missed and options.strict else status


if __name__ == "__main__":
    sys.exit(main())
