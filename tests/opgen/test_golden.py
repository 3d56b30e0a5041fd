"""The text of one wrapper, one gradient function and one page, word for word.

After a deliberate change: ``UPDATE_GOLDEN=1 pytest tests/opgen/test_golden.py``, then read the diff.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from graphdock_opgen.generate import plan
from graphdock_opgen.pages import render_index, render_pages

GOLDEN = Path(__file__).parent / "golden"

MATMUL = """\
graphdock_opdef: 1
namespace: lab
ops:
- name: MatMul
  summary: Batched matrix product.
  math: "y = op(a) op(b)"
  doc: Leading dims broadcast.
  types: {T: {allow: [float32, float64, int32]}}
  attrs:
  - {name: transpose_a, type: bool, default: false, doc: Use a with its last two axes swapped.}
  - {name: transpose_b, type: bool, default: false, doc: Use b with its last two axes swapped.}
  inputs:
  - {name: a, dtype: T, shape: "[*Ba, A0, A1]", doc: Left matrix.}
  - {name: b, dtype: T, shape: "[*Bb, B0, B1]", doc: Right matrix.}
  dims:
    let:
      M: "A1 if transpose_a else A0"
      K: "A0 if transpose_a else A1"
      K2: "B1 if transpose_b else B0"
      N: "B0 if transpose_b else B1"
      B: "broadcast(Ba, Bb)"
    where: [{check: "K == K2", error: "inner sizes differ: {K} (from a) and {K2} (from b)"}]
  outputs: [{name: y, dtype: T, shape: "[*B, M, N]", doc: The product.}]
  traits: {pure: true}
  gradient:
    inputs:
      a: >-
        sum_to(mat_mul(b, g.y, transpose_a=transpose_b, transpose_b=True) if transpose_a
        else mat_mul(g.y, b, transpose_b=not transpose_b), a)
      b: >-
        sum_to(mat_mul(g.y, a, transpose_a=True, transpose_b=transpose_a) if transpose_b
        else mat_mul(a, g.y, transpose_a=not transpose_a), b)
  reference: "graphdock_lab.reference:matmul"
  tests:
    samples:
    - {a: {shape: [3, 4]}, b: {shape: [4, 5]}}
    - {a: {shape: [4, 3]}, b: {shape: [5, 4]}, attrs: {transpose_a: true, transpose_b: true}}
    error_samples: [{a: {shape: [3, 4]}, b: {shape: [5, 6]}, match: "inner sizes differ"}]
    tolerances: {float32: {rtol: 1e-5}}
  api: {endpoints: [{name: matmul}, {name: linalg.matmul}], operator: __matmul__}
- name: TopK
  summary: The k largest along the last axis.
  types: {T: {allow: floats}, index_type: {allow: index, default: int32}}
  attrs:
  - {name: k, type: int, min: 0, doc: How many.}
  - {name: weights, type: list(float), default: [1.0, 2.0]}
  inputs: [{name: x, dtype: T, shape: "[*S, N]"}]
  outputs: [{name: values, dtype: T, shape: "[*S, k]"}, {name: indices, dtype: index_type, shape: "[*S, k]"}]
  gradient: none
"""


@pytest.mark.parametrize("name", ["opdefs.py", "lab_ops.py", "gradients.py", "endpoints.py"])
def test_golden(make, name: str) -> None:
    result = plan(make("graphdock_lab", lab=MATMUL))
    assert result.errors == ()
    text = next(t for p, t in result.files.items() if p.as_posix().endswith(f"_gen/{name}"))
    _compare(text, f"{name}.txt")


def test_golden_page(make) -> None:
    (page,) = render_pages(plan(make("graphdock_lab", lab=MATMUL)).library).items()
    assert page[0] == "lab.md"
    _compare(page[1], "pages_lab.md.txt")


def test_the_index_leads_to_the_heading_of_each_op(make) -> None:
    library = plan(make("graphdock_lab", lab=MATMUL)).library
    index, (page,) = render_index(library), render_pages(library).values()
    assert index.startswith("<!-- Written by graphdock opgen.") and "# All ops of graphdock_lab" in index
    rows = re.findall(r"^- \[([\w.]+)\]\(lab\.md#(\w+)\): \S", index, re.M)
    heads = re.findall(r"^## ([\w.]+)$", page, re.M)
    assert rows == sorted((head, head.lower().replace(".", "")) for head in heads) and rows


def _compare(text: str, name: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_generated_python_is_as_ruff_formats_it() -> None:
    root = Path(__file__).parents[2]
    generated = [str(p) for p in (root / "host/graphdock/ops/_gen", *root.glob("plugins/*/*/_gen"))]
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "--diff", *generated]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000]


def test_text_is_clean(make) -> None:
    """No line ends in blanks, no tabs, one newline at the end, two blank lines before each function."""
    for path, text in plan(make("graphdock_lab", lab=MATMUL)).files.items():
        assert text.endswith("\n") and not text.endswith("\n\n"), path
        assert all(line == line.rstrip() and "\t" not in line for line in text.splitlines()), path
        lines = text.splitlines()
        for i, line in enumerate(lines):
            if path.suffix == ".py" and line.startswith("def "):
                assert lines[i - 2 : i] == ["", ""] and lines[i - 3], (path, i + 1)
