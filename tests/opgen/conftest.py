"""Packages made from YAML text, in a folder of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

Make = Callable[..., Path]

CLIP_NORM = """\
graphdock_opdef: 1
namespace: clipnorm
ops:
- name: ClipNorm
  summary: Scale x so that its L2 norm is at most limit.
  math: "y = x * min(1, limit / ||x||)"
  types: {T: {allow: [float32, float64]}}
  inputs:
  - {name: x, dtype: T, shape: "[*S]", doc: Any tensor.}
  - {name: limit, dtype: T, shape: "[]", doc: Largest norm; positive.}
  outputs: [{name: y, dtype: T, shape: "[*S]"}]
  gradient:
    let:
      n: "sqrt(reduce_sum(x * x))"
      unused: "exp(limit)"
    inputs:
      x: "g.y * (limit / n) - x * (limit * reduce_sum(g.y * x) / (n * n * n))"
      limit: {fn: clip_norm_limit}
  decompose:
  - "n = sqrt(reduce_sum(x * x))"
  - "y = x * minimum(1.0, limit / maximum(n, limit))"
  tests:
    samples: [{x: {shape: [3, 4]}, limit: {value: 0.5}}]
    error_samples: [{x: {shape: [3]}, limit: {shape: [2]}, match: "limit must be a scalar"}]
  api: {endpoints: [{name: clip_norm}]}
"""


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """``make(name, **files)`` writes ``name/specs/<file>.yaml`` and returns the package's folder."""

    def build(name: str = "graphdock_clipnorm", **files: str) -> Path:
        package = tmp_path / name
        (package / "specs").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        for stem, text in (files or {"clipnorm": CLIP_NORM}).items():
            (package / "specs" / f"{stem}.yaml").write_text(textwrap.dedent(text))
        return package

    return build
