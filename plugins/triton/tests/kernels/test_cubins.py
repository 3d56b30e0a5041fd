"""Kernels compiled without a GPU: they take of it what the table ``resources.txt`` says, and none spills."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("this process interprets kernels", allow_module_level=True)

from graphdock_triton.cubin import DESCRIPTOR, compile_cubin  # noqa: E402
from graphdock_triton.kernels.spec import plan  # noqa: E402

from .cases import cases  # noqa: E402  (imports triton)
from .resources import ARCHITECTURES, HEAD, TABLE, ptx_of, rows_of  # noqa: E402

CASES = {name: (kernel, problem) for name, kernel, problem in cases()}
#: Shared memory that a block may have: sm_80, sm_90a, sm_100. Bytes of a frame that cost little.
SHARED = {"sm_80": 163 << 10, "sm_90a": 227 << 10, "sm_100": 227 << 10}
FRAME = 64
#: One case per architecture in the quick tests.
QUICK = dict(zip(("norm bf16 1024", "norm_grad fp32 96", "norm rms bf16 4096"), ARCHITECTURES, strict=True))


def recorded(name: str) -> list[str] | None:
    """What the table says of a case; None where it is of another release of triton."""
    if not TABLE.read_text().startswith(HEAD):
        return None
    return [line for line in TABLE.read_text().splitlines() if line.split(" | ")[0] == name]


def check(found: list[str], wanted: list[str] | None) -> None:
    """Each line is as it was, or, of another release, within what a GPU has."""
    if wanted is not None:
        assert found == wanted
    for name, function, architecture, _, registers, frame, shared in (line.split(" | ") for line in found):
        assert 0 < int(registers) <= 255 and int(frame) <= FRAME, (name, function, architecture)
        assert int(shared) <= SHARED[architecture], (name, function, architecture)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.sampled(2)
def test_a_kernel_takes_what_the_table_says(name):
    architecture = QUICK[name]
    wanted = recorded(name)
    check(
        rows_of(name, *CASES[name], [architecture]),
        None if wanted is None else [line for line in wanted if line.split(" | ")[2] == architecture],
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_takes_what_the_table_says(name):
    check(rows_of(name, *CASES[name]), recorded(name))


def test_the_table_has_every_case_and_no_kernel_of_it_spills():
    lines = TABLE.read_text().splitlines()[1:]
    assert list(dict.fromkeys(line.split(" | ")[0] for line in lines)) == list(CASES)
    check(lines, lines)


#: Kernels that move memory, of sizes that are multiples of 16.
MOVERS = (
    "norm bf16 1024",
    "update_all adam fp32",
    "update_all adam_w bf16",
    "dropout bf16",
    "gather_rows bf16",
    "rotary pairs bf16",
)
#: Kernels that multiply: with Hopper's instruction alone.
MULTIPLIERS = (
    "attention bf16 128",
    "attention_grad bf16 128",
    "matmul plain bf16 8192x4096x1024",
    "conv2d bf16 28 128 128 3",
)


def test_tiles_are_copied_by_descriptors_while_others_are_multiplied():
    """What ``matmul_persistent`` is for, in the assembly: bulk copies that barriers wait for, products that go on meanwhile."""
    kernel, problem = CASES["matmul_persistent odd fp16 1000x77x336"]
    (launch,) = plan(kernel, problem).launches
    text = ptx_of(launch)
    assert "cp.async.bulk.tensor.2d.shared" in text and "mbarrier.try_wait" in text and "tensormap.replace" in text
    assert "wgmma.mma_async" in text and "wgmma.wait_group.sync.aligned 1;" in text
    assert not re.search(r"ld\.local|st\.local|cp\.async\.c[ag]|mma\.sync\.aligned\.m16", text)
    assert "cp.async.bulk.tensor.2d.global" not in text  # rows of C are no multiples of 16 bytes
    read = set(re.findall(r"ld\.param\S*\s+\S+ \[matmul_walk_param_(\d+)\]", text))
    last = len(launch.arguments)
    assert str(last) in read and str(last + 1) not in read  # where descriptors are made; and what profilers have
    taken = compile_cubin(
        launch.function, launch.signature, launch.constants, "sm_90a", launch.options, launch.divisible
    )
    assert taken.scratch == 2 * DESCRIPTOR <= launch.room and DESCRIPTOR % taken.scratch_align == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("matmul_persistent")])
def test_products_that_stay_have_room_for_their_descriptors(name):
    kernel, problem = CASES[name]
    for capability, product in ((90, "wgmma.mma_async"), (100, "tcgen05.mma")):
        given = replace(problem, capability=capability)
        for config in kernel.configs(given)[: None if capability == 90 else 1]:
            launch = plan(kernel, given, config).launches[0]
            taken = compile_cubin(
                launch.function,
                launch.signature,
                launch.constants,
                f"sm_{capability}",
                launch.options,
                launch.divisible,
            )
            assert taken.scratch <= launch.room and taken.spills <= FRAME and taken.shared <= SHARED["sm_90a"], config
        text = ptx_of(launch, capability)
        assert product in text and "cp.async.bulk.tensor" in text


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MOVERS)
def test_what_is_aligned_moves_16_bytes_at_a_time(name):
    kernel, problem = CASES[name]
    for launch in plan(kernel, problem).launches:
        text = ptx_of(launch)
        assert re.search(r"ld\.global\S*\.v4", text) and re.search(r"st\.global\S*\.v4", text)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MULTIPLIERS)
def test_products_are_of_tensor_cores(name):
    kernel, problem = CASES[name]
    launches = [launch for launch in plan(kernel, problem).launches if "deltas" not in launch.function.__name__]
    for text in map(ptx_of, launches):
        assert "wgmma.mma_async" in text and " mma.sync" not in text
