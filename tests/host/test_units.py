"""Bytes and seconds for people."""

from __future__ import annotations

import re

import pytest
from graphdock.units import in_bytes, in_seconds
from hypothesis import given
from hypothesis import strategies as st

BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1023.5 * 1024, "1024 KiB"),
        (15.625 * 2**30, "15.6 GiB"),
    ],
)
def test_bytes(number, text):
    assert in_bytes(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0 us"), (3.25e-6, "3.25 us"), (999.7e-6, "1000 us"), (0.02, "20 ms"), (4000.0, "4000 s")],
)
def test_seconds(number, text):
    assert in_seconds(number) == text


@given(st.floats(0, 1e15), st.sampled_from([(in_bytes, BYTES), (in_seconds, SECONDS)]))
def test_what_is_printed_is_the_amount_without_an_exponent(number, way):
    form, units = way
    text, unit = form(number).split()
    assert re.fullmatch(r"\d+(\.\d+)?", text), text
    assert abs(float(text) * units[unit] - number) <= max(0.006 * number, 0.51 * min(units.values()))
