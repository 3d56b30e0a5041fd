"""Kernels of regions compile to cubins for every architecture, without a GPU; what they take of it is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("triton")

from graphdock.contracts import Axis, KernelRefused, RegionOutput, RegionProgram
from graphdock.dtypes import float32
from graphdock_fusion.regions.typed import Terms
from graphdock_testing.random_regions import random_region
from graphdock_triton.compiling import AheadOfTime, Job
from graphdock_triton.cubin import Options
from graphdock_triton.modules import load_function
from graphdock_triton.regions.compiler import job_of
from graphdock_triton.regions.kernel import region_kernel
from graphdock_triton.regions.layout import what_forbids

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
EXTENTS = [(50, 70), (4096,), (3, 64, 128), (64, 33), (300, 20000)]
DTYPES = [
    ("float32", "float16", "bfloat16", "int32", "bool"),
    ("float32", "int8", "uint8", "int64"),
    ("float64", "bool"),
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


def kernel_of(seed):
    """A random region over extents of real sizes."""
    rng, extents = np.random.default_rng(seed), EXTENTS[seed % len(EXTENTS)]
    last = len(extents) - 1
    reduced = [(), (last,), (0,), tuple(range(len(extents)))][int(rng.integers(4))]
    small, _ = random_region(rng, (2, 3, 4)[: len(extents)], reduced, DTYPES[seed % len(DTYPES)])

    def grown(tensor):
        return replace(tensor, shape=tuple(1 if d is None else extents[d] for d in tensor.dims))

    program = replace(
        small,
        axes=tuple(Axis(a.name, size) for a, size in zip(small.axes, extents, strict=True)),
        inputs=tuple(map(grown, small.inputs)),
        outputs=tuple(map(grown, small.outputs)),
    )
    return None if what_forbids(program) else region_kernel(program)


def check(seed, architecture):
    kernel = kernel_of(seed)
    while kernel is not None:
        numbers = kernel.numbers()
        divisible = [n for n in kernel.text.arguments[:-2] if numbers.get(n, 0) % 16 == 0]
        cubin = AheadOfTime().compile(job_of(kernel, divisible), architecture)
        assert cubin.image[:4] == b"\x7fELF" and cubin.entry == kernel.text.name
        assert cubin.threads == 32 * kernel.tiles.options.warps and cubin.scratch == 0
        assert 0 < cubin.registers <= 255
        kernel = kernel.rest()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(2)
def test_regions_compile(seed):
    check(seed, ARCHITECTURES[seed])


@pytest.mark.exhaustive
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("start", range(0, 60, 10))
def test_many_regions_compile(start, architecture):
    for seed in range(start, start + 10):
        check(seed, architecture)


def test_a_whole_tile_of_aligned_float32_is_read_in_vectors():
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    kernel = kernel_of(0)
    kernel = next(
        k for k in map(kernel_of, range(40)) if k is not None and not k.layout.reduced and k.tiles.walk.even_kept
    )
    names = list(kernel.text.arguments)
    numbers = kernel.numbers()
    attrs = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names[:-2]) if numbers.get(n, 0) % 16 == 0}
    kinds = {n: kernel.signature().get(n, "constexpr") for n in names}
    made = compile(
        ASTSource(kernel.function(), kinds, constexprs=kernel.constants(), attrs=attrs),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": kernel.tiles.options.warps, "enable_fp_fusion": True},
    )
    assert ".v4" in made.asm["ptx"] or ".v2" in made.asm["ptx"]


def test_what_does_not_compile_is_refused_with_its_reason():
    source = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef broken(x):\n    tl.store(x, nothing)\n"
    job = Job("broken", "k", lambda: load_function("broken", source), {"x": "*fp32"}, {}, Options())
    with pytest.raises(KernelRefused, match="(?s)broken does not compile for sm_90a: .*nothing is not defined"):
        AheadOfTime().compile(job, "sm_90a")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.sampled(2)
def test_draws_compile_without_a_spill(dtype):
    program, _ = random_region(np.random.default_rng(5), (40, 64), (1,), (dtype,), draws=1)
    kernel = region_kernel(program)
    cubin = AheadOfTime().compile(job_of(kernel, ()), "sm_90a")
    assert cubin.spills == 0 and cubin.registers > 0


@pytest.mark.parametrize(("extents", "reduced"), [((40, 64), ()), ((40, 64), (1,)), ((4096, 64), (0,))])
@pytest.mark.sampled(2)
def test_numbers_that_are_drawn_by_blocks_compile_without_a_spill(extents, reduced):
    terms, space = Terms(), (0, 1)
    drawn = terms.uniform(0, space, float32)
    out = RegionOutput("y", drawn, float32, extents, space)
    if reduced:
        out = RegionOutput(
            "y", terms.reduce("sum", drawn, reduced), float32, extents[1 - reduced[0] :][:1], (1 - reduced[0],)
        )
    axes = tuple(Axis(f"a{i}", n) for i, n in enumerate(extents))
    kernel = region_kernel(RegionProgram("drawn", axes, (), tuple(terms.terms), (out,), ("s",)))
    assert "_draws_float32(" in kernel.text.source.partition("def region_")[2]
    for architecture in ARCHITECTURES:
        cubin = AheadOfTime().compile(job_of(kernel, ()), architecture)
        assert cubin.spills == 0 and 0 < cubin.registers <= 168
