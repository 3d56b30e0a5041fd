"""Pages about GPUs say first that no GPU has run this, until one has: then its table is in ``benchmarks/results``."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "never run on a GPU",
    "docs/use-a-gpu.md": "This has never run on a GPU.",
    "docs/write-a-triton-kernel.md": "This has never run on a GPU.",
    "plugins/cuda/README.md": "This has never run on a GPU.",
    "plugins/triton/README.md": "This has never run on a GPU.",
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_about_gpus_says_at_the_top_whether_one_has_run_it(page: str) -> None:
    top = "".join((ROOT / page).read_text(encoding="utf-8").splitlines(keepends=True)[:10])
    has_run = any((ROOT / "benchmarks" / "results").glob("*gpu_check*"))
    assert (PAGES[page] in top) is not has_run
