"""Manifests of graphdock's own plugins hold what their code registers (``graphdock opgen manifest`` writes it)."""

from pathlib import Path

import pytest
from graphdock_opgen.manifest import updated

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [
    ROOT / "plugins" / "cpu" / "graphdock_cpu",
    ROOT / "plugins" / "std" / "graphdock_std",
    ROOT / "plugins" / "tensorflow" / "graphdock_tensorflow",
    ROOT / "tests" / "packages" / "graphdock-toy" / "src" / "graphdock_toy",
]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.name)
def test_a_manifest_is_what_the_code_registers(package):
    path, text, wanted = updated(package)
    assert text == wanted, f"run `graphdock opgen manifest {path.parent.relative_to(ROOT)}`"
