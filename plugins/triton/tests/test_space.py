"""The configurations of regions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphdock.contracts import Axis
from graphdock_testing.random_regions import random_region
from graphdock_triton.regions.kernel import region_kernel
from graphdock_triton.regions.layout import layout_of
from graphdock_triton.regions.space import space, subject
from graphdock_triton.regions.tiles import choose


def program(extents, reduced, seed=0):
    return random_region(np.random.default_rng(seed), extents, reduced, ("float32",))[0]


@pytest.mark.parametrize(
    ("extents", "reduced"),
    [((3000,), ()), ((64, 4000), (1,)), ((4000, 64), (0,)), ((7,), ()), ((100000,), (0,)), ((1, 1), (1,))],
)
def test_every_configuration_makes_a_kernel_and_the_guess_is_first(extents, reduced):
    made = program(extents, reduced)
    guess = choose(made, layout_of(made))
    found = space(made)
    assert found[0] == (guess.block_k, guess.block_r, guess.shares) and len(found) == len(set(found)) <= 64
    for block in found:
        kernel = region_kernel(made, block)
        rows, columns = kernel.tiles.block_k, kernel.tiles.block_r
        assert rows & (rows - 1) == 0 and columns & (columns - 1) == 0 and kernel.grid[0] * rows >= 1


def test_sizes_of_one_class_share_a_choice_and_names_do_not_count():
    one = program((1000, 48), (1,))
    like = replace(one, name="other", axes=(Axis("rows", 1016), Axis("columns", 64)))
    assert subject(one).content == subject(like).content and subject(one).sizes == subject(like).sizes
    for other in ((1001, 48), (1100, 48), (1000, 47)):
        changed = replace(one, axes=tuple(Axis("a", n) for n in other))
        assert (
            subject(changed).sizes == subject(one).sizes
            if other == (1001, 48)
            else subject(changed).sizes != subject(one).sizes
        )
    assert subject(program((1000, 48), (0,))).content != subject(one).content
