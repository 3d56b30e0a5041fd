"""What is counted of a library's gradients: decisions, one per input."""

from __future__ import annotations

from graphdock_opgen.counts import Counts, counts, decisions
from graphdock_opgen.library import load_library

from .test_spec_errors import GOOD


def test_each_input_is_counted_once_by_how_it_gets_its_gradient(make) -> None:
    library = load_library(make("pkg", toy=GOOD))  # b of Mix could have a gradient; a of Other is an integer
    assert decisions(library) == [("toy.Mix.xs", "fn"), ("toy.Mix.w", "formula"), ("toy.Mix.b", "none")]
    assert counts(library) == Counts(formula=1, fn=1, none=1)


def test_counts_add_up_and_read_as_one_line() -> None:
    both = Counts(1, 2, 3, 4, 5) + Counts(formula=10, todo=1)
    assert both == Counts(11, 2, 3, 4, 6)
    assert str(both) == "gradients: formula 11, op 2, function 3, none 4, todo 6"
