"""What is kept of compiled kernels: in a process, on disk, and when the disk fails."""

from __future__ import annotations

import sys
import threading

import pytest
from graphdock.contracts import KernelRefused
from graphdock_triton import compiling
from graphdock_triton.compiling import Job, cubin_of
from graphdock_triton.cubin import Cubin, Options

MADE = Cubin(b"image\n\0with anything", "kernel", 128, 2048, 384, 128, 32, 8)


class Counting:
    keeps = True
    version = "counting"

    def __init__(self):
        self.jobs = []
        self.go = threading.Event()
        self.go.set()

    def compile(self, job, architecture):
        self.go.wait(60)
        self.jobs.append((job.name, architecture))
        if job.name == "broken":
            raise KernelRefused("broken does not compile")
        return MADE


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    made = Counting()
    before = compiling.use(made)
    yield made
    compiling.use(before)


def job(name="kernel", key="key", divisible=(), room=384):
    return Job(name, key, lambda: None, {}, {}, Options(), divisible, room)


def test_a_kernel_is_compiled_once_in_a_process_even_when_two_ask_at_once(compiler):
    compiler.go.clear()
    first, second = cubin_of(job(), "sm_90a"), cubin_of(job(), "sm_90a")
    compiler.go.set()
    assert first is second and first.result() == MADE and len(compiler.jobs) == 1


def test_a_kernel_that_takes_more_scratch_memory_than_it_is_given_is_refused_kept_or_not(compiler):
    for _ in range(2):
        with pytest.raises(KernelRefused, match="kernel takes 384 bytes of global scratch memory .* is given 256: 128"):
            cubin_of(job(room=256), "sm_90a").result()
        compiling.use(compiler)
    assert len(compiler.jobs) == 1
    assert cubin_of(job(room=512), "sm_90a").result() == MADE


def test_architecture_alignment_and_compiler_make_another_kernel(compiler):
    for architecture, divisible in (("sm_80", ()), ("sm_90a", ()), ("sm_90a", ("x0",))):
        cubin_of(job(divisible=divisible), architecture).result()
    assert len(compiler.jobs) == 3


def test_the_next_process_reads_what_was_kept(compiler):
    cubin_of(job(), "sm_90a").result()
    compiling.use(compiler)  # forgets what this process has
    assert cubin_of(job(), "sm_90a").result() == MADE and len(compiler.jobs) == 1


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d[:10], lambda d: b"", lambda d: d[:40] + b"!" + d[41:]]
)
def test_a_damaged_file_is_made_again(compiler, tmp_path, damage):
    cubin_of(job(), "sm_90a").result()
    (path,) = tmp_path.rglob("*.cubin")
    path.write_bytes(damage(path.read_bytes()))
    compiling.use(compiler)
    assert cubin_of(job(), "sm_90a").result() == MADE and len(compiler.jobs) == 2
    compiling.use(compiler)
    assert cubin_of(job(), "sm_90a").result() == MADE and len(compiler.jobs) == 2


def test_a_folder_that_cannot_be_written_keeps_nothing_and_fails_nothing(compiler, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path / "file"))
    assert cubin_of(job(), "sm_90a").result() == MADE


def test_a_refusal_reaches_everyone_who_asked(compiler):
    for _ in range(2):
        with pytest.raises(KernelRefused, match="broken does not compile"):
            cubin_of(job("broken"), "sm_90a").result()


def test_without_a_compiler_what_is_missing_says_how_it_is_made(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(KernelRefused, match="kernel is not in the cache for sm_90a.*graphdock triton build"):
        compiling.AheadOfTime().compile(job(), "sm_90a")


def test_whoever_listens_is_told_what_is_asked_for_and_whether_it_was_made_now(compiler):
    heard = []
    with compiling.noted(heard.append):
        cubin_of(job(), "sm_90a").result()
        compiling.use(compiler)
        cubin_of(job(), "sm_90a").result()
    cubin_of(job("other"), "sm_90a").result()
    assert [(a.job.name, a.architecture, a.compiled) for a in heard] == [
        ("kernel", "sm_90a", True),
        ("kernel", "sm_90a", False),
    ]
