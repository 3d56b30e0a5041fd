"""The names that ``graphdock.contracts`` publishes, each imported when it is first asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import types

import graphdock.contracts as contracts
import pytest


@pytest.mark.parametrize(("module", "names"), contracts._PUBLISHED.items())
def test_a_module_means_to_publish_what_is_published_of_it(module, names):
    home = importlib.import_module(f"graphdock.contracts.{module}")
    for name in names.split():
        assert name in home.__all__
        assert getattr(contracts, name) is getattr(home, name)


def test_no_module_hides_a_name():
    """Python binds a module in its package, over whatever stood there."""
    assert not {m.name for m in pkgutil.iter_modules(contracts.__path__)} & {*contracts._HOMES, "hookimpl"}
    modules = {name for name in contracts.__all__ if isinstance(getattr(contracts, name), types.ModuleType)}
    assert modules == {"dtypes", "errors", "shape"}


def test_a_kernels_module_loads_no_contracts_of_regions_and_executors():
    code = "import sys; from graphdock.contracts import KernelDef, Out, dtypes; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "graphdock.contracts.kernel" in loaded
    assert not {f"graphdock.contracts.{m}" for m in ("region", "pattern", "executor", "formats", "cut")} & {*loaded}
    assert not {"hashlib", "difflib", "ssl"} & {*loaded}
