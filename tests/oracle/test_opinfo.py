"""A handful of ops through the comparison with PyTorch's samples; ``python -m tests.oracle.opinfo`` takes all."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.mark.parametrize(
    "name", ["sinh", "maximum", "matmul", "sum", "cumprod", "nn.functional.conv2d", "linalg.cholesky", "igamma"]
)
def test_samples_agree_or_say_why(name):
    from tests.oracle import opinfo

    found = opinfo.compare(name, 12)
    assert found.agree and not opinfo.unexplained(name, found)


def test_what_no_pattern_finds_is_unexplained():
    from tests.oracle import opinfo

    tie, other = "max_binary float64 3: gradient of input 0: off", "max_binary float64 4: output 0: off"
    found = opinfo.Agreement(agree=3, faults=[tie, other])
    assert opinfo.unexplained("maximum", found) == [other]
    assert opinfo.unexplained("sin", found) == [tie, other]
    assert opinfo.lines("maximum", found, 1)[1:] == [
        "    1 explained: where both are equal the first takes the whole gradient; PyTorch halves it",
        "    1 unexplained",
        f"        {other}",
    ]
    assert opinfo.summary({"maximum": found, "sin": opinfo.Agreement()}).endswith(
        "1 ops compared, 0 of them in 20 samples and more; 5 samples compared, 3 agree; 0 ops at 100 %, 0 explained, 1 unexplained"
    )


def test_values_and_shapes_that_differ_are_said():
    import numpy as np

    from tests.oracle import opinfo

    one = np.ones(3)
    assert opinfo._difference(one, one, 1e-9, 1e-9) == ""
    assert "shape (3,), PyTorch's (1,)" in opinfo._difference(one, np.ones(1), 1e-9, 1e-9)
    assert "1 of 3 elements, at (1,)" in opinfo._difference(one, np.array([1, 2, 1.0]), 1e-9, 1e-9)
    assert "2 elements differ" in opinfo._difference(np.arange(3), np.array([0, 2, 1]), 0, 0)
