"""Windows of images larger than the samples of the spec: inside, across each border, and far outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graphdock_std.reference.image_random import extract_glimpse

Computed = Callable[..., list[np.ndarray]]


@pytest.mark.parametrize("noise", [{}, {"uniform_noise": False}, {"uniform_noise": False, "noise": "zero"}])
@pytest.mark.parametrize("centered", [False, True])
def test_windows(computed: Computed, noise: dict[str, object], centered: bool) -> None:
    images = np.random.default_rng(1).standard_normal((5, 21, 18, 3)).astype(np.float32)
    offsets = np.array([[0.2, 0.3], [-1, -1], [1, 0.9], [0, 7], [-1e30, 0.1]], np.float32)
    arrays = {"input": images, "size": np.array([9, 14], np.int32), "offsets": offsets}
    attrs = {"centered": centered, "seed": 3, "seed2": 4, **noise}
    (y,) = computed("ExtractGlimpse", arrays, **attrs)
    np.testing.assert_allclose(y, extract_glimpse(**arrays, **attrs), rtol=2e-5, atol=2e-5)
