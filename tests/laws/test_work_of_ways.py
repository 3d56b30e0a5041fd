"""The way that a convolution takes does at most four times the work of the least, over random shapes; work is counted, not timed.

Every way of a layer is run on small tensors whose buffers count what is written to them and how often; products are counted by the
function that computes them. What a way says of its work has no part in the count.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from graphdock_cpu.kernels import conv
from graphdock_cpu.kernels.sliding import Slide

pytestmark = pytest.mark.plain

DIRECTIONS = {"forward": "FORWARD", "input": "INPUT", "filter": "FILTER"}
#: A way may do so many times the work of the least.
AT_MOST = 4.0
#: Elements that a call of NumPy counts as, an inner loop of a copy and one of a ufunc, which takes 50 ns; multiplications of a
#: product that count as one element.
CALL, LOOP, UFUNC_LOOP, FLOPS = 4000, 8, 64, 8


class Counted(np.ndarray):
    """An array that counts the elements that NumPy's functions write to it, their inner loops and the calls, for all that share
    ``work``.
    """

    work: list[float]

    def __array_finalize__(self, source: Any) -> None:
        self.work = getattr(source, "work", [0.0])

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self.work[0] += elementwise(*args)
        return function(*map(plain, args), **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        self.work[0] += elementwise(*out, *inputs, loop=UFUNC_LOOP)
        return getattr(ufunc, method)(*map(plain, inputs), out=tuple(map(plain, out)), **kwargs)

    def fill(self, value: Any) -> None:
        self.work[0] += self.size + CALL
        plain(self).fill(value)


def elementwise(*arrays: Any, loop: float = LOOP) -> float:
    """Work of a pass over arrays that broadcast to the shape of the first: NumPy joins dims that lie behind one another in
    all of them, and loops over the last.
    """
    shape = arrays[0].shape
    strides = [np.broadcast_to(plain(a), shape).strides for a in arrays if isinstance(a, np.ndarray)]
    dims = [i for i, n in enumerate(shape) if n > 1]
    inner = shape[dims[-1]] if dims else 1
    for last, outer in itertools.pairwise(dims[::-1]):
        if any(s[last] != s[outer] * shape[outer] for s in strides):
            break
        inner *= shape[last]
    return arrays[0].size * (1 + loop / inner) + CALL


def plain(array: Any) -> Any:
    return array.view(np.ndarray) if isinstance(array, Counted) else array


def draw(chance: random.Random, most: int = 1 << 20) -> Slide:
    """A window over two or three dims, of ``most`` multiplications; one in three takes a whole dim at once, as texts are read."""

    def number(a: int, b: int) -> int:
        return round(math.exp(chance.uniform(math.log(a), math.log(b))))

    while True:
        rank = chance.choice([2, 2, 3])
        size = tuple(number(1, 40) for _ in range(rank))
        window = [chance.choice([1, 1, 2, 3, 3, 5, number(1, 20)]) for _ in range(rank)]
        if chance.random() < 0.3:
            window[-1] = size[-1]
        stride, dilation = ((1,) * rank,) * 2
        if chance.random() < 0.3:
            stride = tuple(chance.choice([1, 2, 3]) for _ in range(rank))
        elif chance.random() < 0.3:
            dilation = tuple(chance.choice([1, 2]) for _ in range(rank))
        span = tuple((k - 1) * d + 1 for k, d in zip(window, dilation, strict=True))
        if chance.random() < 0.5:
            out = tuple(-(-n // s) for n, s in zip(size, stride, strict=True))
            around = ((o - 1) * s + p - n for o, s, p, n in zip(out, stride, span, size, strict=True))
            before = tuple(max(0, a) // 2 for a in around)
        else:
            out = tuple((n - p) // s + 1 for n, p, s in zip(size, span, stride, strict=True))
            before = (0,) * rank
        if min(out) < 1:
            continue
        channels, outputs = (chance.choice([1, 3, number(1, 200)]) for _ in range(2))
        slide = Slide(number(1, 16), channels, outputs, size, tuple(window), stride, dilation, before, out)
        work = slide.rows * slide.taps * channels * outputs
        if most / 8 < work < most and slide.taps * channels < 4000:
            return slide


def tensors(slide: Slide, direction: str) -> list[np.ndarray]:
    """What a method of that direction is called with, in order; the last one is its result."""
    x = (slide.batch, *slide.size, slide.channels)
    w = (*slide.window, slide.channels, slide.outputs)
    y = (slide.batch, *slide.out, slide.outputs)
    shapes = {"forward": (x, w, y), "input": (w, y, x), "filter": (x, y, w)}[direction]
    rng = np.random.default_rng(0)
    return [rng.random(s, np.float32) for s in shapes]


def counted(way: conv.Way, slide: Slide, direction: str) -> float:
    """The work of a way, run on tensors that count."""
    work = [0.0]

    def buffer(array: np.ndarray) -> Counted:
        found = array.view(Counted)
        found.work = work
        return found

    def product(x: Any, y: Any, out: Any) -> None:
        work[0] += x.shape[0] * x.shape[1] * y.shape[1] / FLOPS + CALL
        np.dot(plain(x), plain(y), plain(out))

    compute, scratch = way.make(slide, product)
    *given, out = tensors(slide, direction)
    compute(*given, buffer(out), *(buffer(np.empty(s, np.float32)) for s in scratch))
    return work[0]


def excess(ways: Sequence[conv.Way], slide: Slide, direction: str) -> float:
    """How many times the least work the chosen way does."""
    part = slide.part(slide.met)
    able = {way.name: counted(way, part, direction) for way in ways if way.applies(part)}
    return able[conv.choose(ways, part).name] / min(able.values())


def slides(seed: int, count: int = 20) -> list[Slide]:
    chance = random.Random(seed)
    return [draw(chance) for _ in range(count)]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_chosen_way_does_at_most_four_times_the_least_work(direction: str, seed: int) -> None:
    ways = getattr(conv, DIRECTIONS[direction])
    for slide in slides(seed):
        assert excess(ways, slide, direction) <= AT_MOST, slide


def _always_turned(slide: Slide) -> float:
    """What chose before: it turns the filter wherever it can and the channels are few."""
    return 0.0 if slide.outputs < 2 * slide.channels or slide.channels < 64 else math.inf


#: A way, and what a wrong table says of its work.
FAULTS: dict[str, tuple[str, str, Callable[[Slide], float]]] = {
    "a filter that turns wherever channels are few": ("input", "flipped", _always_turned),
    "adding up costs nothing": ("input", "col2im", lambda slide: 0.0),
    "col2im by the output's channels": ("input", "col2im", lambda slide: slide.rows * slide.taps * slide.outputs),
    "planes cost nothing": ("forward", "planes", lambda slide: 0.0),
    "planes of a filter's gradient cost nothing": ("filter", "planes", lambda slide: 0.0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_law_sees_a_table_that_is_wrong(fault: str) -> None:
    direction, name, wrong = FAULTS[fault]
    ways = [
        dataclasses.replace(way, work=wrong) if way.name == name else way
        for way in getattr(conv, DIRECTIONS[direction])
    ]
    found = (excess(ways, slide, direction) > AT_MOST for slide in itertools.chain(*map(slides, range(4))))
    assert any(found)


def test_a_text_that_is_read_whole_is_no_convolution_of_its_gradient() -> None:
    """x [64, 56, 128, 1] by w [3, 128, 1, 128]: turned around, windows of 17,000 elements for each element of x."""
    slide = Slide(64, 1, 128, (56, 128), (3, 128), (1, 1), (1, 1), (0, 0), (54, 1))
    assert conv.choose(conv.INPUT, slide).name in ("col2im", "planes")


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (5, 2)])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_of_a_window_larger_than_the_maps_only_a_part_is_used(size: tuple[int, int], direction: str) -> None:
    slide = Slide(2, 3, 4, size, (9, 9), (1, 1), (1, 1), (4, 4), size)
    assert slide.part(slide.met).window == tuple(2 * n - 1 for n in size)
