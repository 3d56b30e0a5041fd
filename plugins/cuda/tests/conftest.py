"""What the tests of the cuda plugin share: a fake CUDA, and kernels that are built once."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.source import prelude
from graphdock_cuda.testing import Emulator, find_compiler, toolkit
from graphdock_cuda.testing.cupy_bindings import CUDADriverError, CUDARuntimeError


class Rig:
    """A fake CUDA with what tests do to it. Attributes: ``driver``; ``s``, a stream of device 0."""

    def __init__(self, build: Any, **options: Any) -> None:
        self.tools = toolkit(**options)
        self.driver = self.tools.driver
        self.driver.set_device(0)
        self.build = build
        self.s = self.driver.stream()
        self._staging: dict[int, int] = {}

    def kernel(self, code: str, name: str) -> int:
        """A function of a source behind the prelude."""
        return self.driver.function(self.driver.load(self.build(code)), name)

    def launch(
        self, function: int, *args: Any, grid: Any = 1, block: Any = 32, shared: int = 0, stream: int | None = None
    ) -> None:
        """Launch with parameters: ints are 64 bits, floats 32; NumPy scalars and bytes as they are."""
        values = [_packed(arg) for arg in args]
        buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
        params = (ctypes.c_void_p * max(len(buffers), 1))(*[ctypes.addressof(buffer) for buffer in buffers])
        dims = [(*(d if isinstance(d, tuple) else (d,)), 1, 1)[:3] for d in (grid, block)]
        stream = self.s if stream is None else stream
        self.driver.launch(function, *dims[0], *dims[1], shared, stream, ctypes.addressof(params))
        # what CUDA reads after the launch returned is not what the caller has there then
        for buffer in buffers:
            ctypes.memset(buffer, 0xEE, len(buffer))

    def pinned(self, count: int, dtype: Any) -> tuple[int, np.ndarray]:
        """Pinned memory: its address, and an array over it."""
        nbytes = count * np.dtype(dtype).itemsize
        address = self.driver.host_alloc(nbytes)
        return address, np.ctypeslib.as_array((ctypes.c_ubyte * nbytes).from_address(address)).view(dtype)

    def put(self, array: np.ndarray) -> int:
        """Device memory with these elements."""
        array = np.ascontiguousarray(array)
        source, view = self.pinned(array.size, array.dtype)
        view[:] = array.reshape(-1)
        address = self.driver.malloc(array.nbytes, self.s)
        self.driver.copy(address, source, array.nbytes, self.s)
        self.driver.stream_synchronize(self.s)
        self.driver.host_free(source)
        return address

    def get(self, address: int, count: int, dtype: Any) -> np.ndarray:
        """Elements of device memory, when the stream is done."""
        target, view = self.pinned(count, dtype)
        self.driver.copy(target, address, view.nbytes, self.s)
        self.driver.stream_synchronize(self.s)
        out = view.copy()
        self.driver.host_free(target)
        return out

    def compute(
        self, code: str, name: str, *arrays: Any, grid: Any = 1, block: Any = 32, shared: int = 0
    ) -> list[np.ndarray]:
        """Run a kernel of arrays, scalars among them; the arrays as it left them."""
        addresses = [self.put(a) if isinstance(a, np.ndarray) else a for a in arrays]
        self.launch(self.kernel(code, name), *addresses, grid=grid, block=block, shared=shared)
        return [
            self.get(address, a.size, a.dtype).reshape(a.shape)
            for address, a in zip(addresses, arrays, strict=True)
            if isinstance(a, np.ndarray)
        ]


def _packed(arg: Any) -> bytes:
    if isinstance(arg, bytes):
        return arg
    if isinstance(arg, float):
        arg = np.float32(arg)
    return (np.int64(arg) if isinstance(arg, int) else arg).tobytes()


@pytest.fixture(scope="session")
def build() -> Any:
    """``build(code)``: an image of the prelude and the code, each compiled once. Skips where there is no g++."""
    if find_compiler() is None:
        pytest.skip("needs g++")
    emulator, images = Emulator(), {}

    def built(code: str) -> bytes:
        if code not in images:
            images[code] = emulator.compile(prelude() + '#line 1 "test"\n' + code, "test", "sm_90a")
        return images[code]

    return built


@pytest.fixture
def rig(rigs: Any) -> Rig:
    """A fake CUDA of one GPU."""
    made: Rig = rigs()
    return made


@pytest.fixture
def rigs(build: Any, bindings: dict[str, bool]) -> Any:
    """``rigs(seed=1, gpus=2)``: others."""
    return lambda **options: Rig(build, **bindings, **options)


@pytest.fixture
def bindings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """How the driver is asked. Tests of calls run twice: of the fake itself, and through CupyDriver, whose errors are CuPy's."""
    through = getattr(request, "param", "fake") == "cupy"
    if through:
        for name in {"CudaError", "Misuse"} & {*vars(request.module)}:
            monkeypatch.setattr(request.module, name, (CudaError, CUDARuntimeError, CUDADriverError))
    return {"cupy": through}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.endswith("_calls") and "rigs" in metafunc.fixturenames:
        metafunc.parametrize("bindings", ["fake", "cupy"], indirect=True)
