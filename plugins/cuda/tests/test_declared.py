"""Plans for GPUs that are not here."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import pytest
from graphdock.contracts import DeviceUnavailable, errors
from graphdock.plugin.host import Host
from graphdock_cuda.declared import MODELS, DeclaredDriver, properties_of
from graphdock_cuda.factory import CudaFactory


class Compiler:
    """Compiles nothing."""

    version = "none"

    def __init__(self) -> None:
        self.architectures: set[str] = set()

    def __call__(self) -> Compiler:
        return self

    def compile(self, source: str, name: str, architecture: str) -> bytes:
        self.architectures.add(architecture)
        return b"image"


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Compiler:
    made = Compiler()
    monkeypatch.setattr("graphdock_cuda.driver.nvrtc.Nvrtc", made)
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    return made


@pytest.mark.parametrize("name", ["sm_90", "sm_90a", "90", "9.0", "SM_90A"])
def test_an_architecture_may_be_written_in_several_ways(name: str) -> None:
    assert properties_of(name) is MODELS[9, 0] and properties_of(name).architecture == "sm_90a"


@pytest.mark.parametrize("name", ["sm_91", "h100", "", "sm_900"])
def test_an_architecture_that_is_not_known_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(DeviceUnavailable, match="(?s)no GPU of architecture.*sm_80"):
        properties_of(name)


def test_a_slip_in_an_architecture_is_told() -> None:
    with pytest.raises(DeviceUnavailable, match="did you mean 'sm_90'"):
        properties_of("sm90")


def test_a_step_is_planned_and_compiled_and_never_run(compiler: Compiler) -> None:
    host = Host()
    x = tf.placeholder(tf.float32, [8, 16])
    y = tf.nn.softmax(tf.matmul(x, tf.Variable(tf.zeros([16, 4]))))
    config = tf.SessionConfig(backends=["cuda", "cpu"], plan_for={"cuda": "sm_80"})
    with tf.Session(config=config, host=host) as sess:
        kernels = sess.explain(y).kernels()
        assert "cuda.softmax" in kernels and "cpu.softmax" not in kernels
        assert compiler.architectures == {"sm_80"}
        with pytest.raises(errors.FailedPreconditionError, match=r"a device that is not here \(cuda sm_80\), and runs"):
            sess.run(y, {x: [[0.0] * 16] * 8})


def test_gpus_are_not_looked_for(compiler: Compiler) -> None:
    def never() -> Any:
        raise AssertionError("CUDA was loaded")

    device = CudaFactory(never).declared("sm_100", {})
    assert (device.architecture, device.info.multiprocessors) == ("sm_100", 148)


@pytest.mark.parametrize("call", ["launch", "copy", "load", "host_alloc", "instantiate"])
def test_work_is_refused(call: str) -> None:
    with pytest.raises(
        errors.FailedPreconditionError, match=f"sm_90a that is planned for is not here: it has no {call}"
    ):
        getattr(DeclaredDriver(MODELS[9, 0]), call)


def test_without_nvrtc_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise FileNotFoundError("libnvrtc.so was not found")

    monkeypatch.setattr("graphdock_cuda.driver.nvrtc.Nvrtc", missing)
    with pytest.raises(DeviceUnavailable, match="(?s)NVRTC can't be loaded: libnvrtc.so was not found.*pip install"):
        CudaFactory().declared("sm_90", {})
