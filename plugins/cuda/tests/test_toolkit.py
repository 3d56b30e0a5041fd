"""CUDA as a machine has it: which libraries are chosen, and what is said of those that are missing."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from graphdock_cuda import toolkit as real
from graphdock_cuda.driver.api import Toolkit, Unsupported
from graphdock_cuda.testing import toolkit


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``machine(12040)``: its CUDA, of a driver of that version, and for which CUDA its compiler was chosen."""
    fake, chosen = toolkit(), []
    monkeypatch.setattr("graphdock_cuda.driver.cupy_driver.CupyDriver", lambda: fake.driver)
    monkeypatch.setattr("graphdock_cuda.driver.nvrtc.Nvrtc", lambda major: chosen.append(major) or fake.compiler)

    def make(newest: int) -> tuple[Toolkit, list[int]]:
        monkeypatch.setattr(fake.driver, "driver_version", lambda: newest)
        return real.real.__wrapped__(), chosen

    real._blas.cache_clear()
    yield make
    real._blas.cache_clear()


@pytest.mark.parametrize(("newest", "major"), [(12040, 12), (13000, 13), (13050, 13), (14000, 14)])
def test_the_compiler_is_no_newer_than_the_driver(machine: Any, newest: int, major: int) -> None:
    assert machine(newest)[1] == [major]


def test_libraries_that_are_missing_are_unsupported(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("nvmath", "nvmath.bindings", "cudnn"):
        monkeypatch.setitem(sys.modules, package, None)
    tools, _ = machine(13000)
    for _ in range(2):
        with pytest.raises(Unsupported, match="nvmath can't be loaded"):
            tools.blas()
        with pytest.raises(Unsupported, match="cuDNN's front end can't be loaded"):
            tools.dnn()


@pytest.mark.parametrize(("newest", "extra"), [(12080, "cudnn12"), (13000, "cudnn13")])
def test_a_network_library_that_is_missing_is_recommended_for_the_driver(
    machine: Any, monkeypatch: pytest.MonkeyPatch, newest: int, extra: str
) -> None:
    class FrontEnd:
        @staticmethod
        def backend_version() -> int:
            raise RuntimeError("libcudnn.so.9: cannot open shared object file")

    monkeypatch.setitem(sys.modules, "cudnn", FrontEnd)
    with pytest.raises(Unsupported, match=rf"cuDNN can't be loaded \(libcudnn.*graphdock-cuda\[{extra}\]"):
        machine(newest)[0].dnn()
