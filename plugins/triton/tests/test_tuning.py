"""Choices among configurations: the quickest is found, kept, and found again."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import Future

import pytest
from graphdock.contracts import KernelRefused
from graphdock_triton import compiling, tuning
from graphdock_triton.compiling import Job
from graphdock_triton.cubin import Cubin, Options
from graphdock_triton.tuning import Candidate, Subject, choose

SUBJECT = Subject("region", "content", (1024, 1))


class Compiler:
    """A compiler whose kernels take as many registers as their key says; a key of 0 does not compile."""

    keeps, version = False, "one"

    def compile(self, job, architecture):
        registers = int(job.key)
        if not registers:
            raise KernelRefused("no")
        return Cubin(b"", "k", 128, 0, registers=registers)


@pytest.fixture(autouse=True)
def compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    made = Compiler()
    before = compiling.use(made)
    yield made
    compiling.use(before)


class Bench:
    """Candidates, and a measurer by whose clock each takes as long as ``seconds`` says. ``ran``: those that were measured."""

    def __init__(self, registers=(32, 64, 255), seconds=(3.0, 1.0, 2.0)):
        self.registers, self.seconds = registers, dict(enumerate(seconds))
        self.ran, self.made = [], 0

    def candidates(self):
        self.made += 1
        jobs = [Job("kernel", str(r), lambda: None, {}, {}, Options()) for r in self.registers]
        return [
            Candidate((i, 1), [job], 1056, 4096, lambda queue, i=i: self.ran.append(i)) for i, job in enumerate(jobs)
        ]

    def measure(self, runs):
        times = []
        for run in runs:
            run(None)
            times.append(self.seconds[self.ran[-1]])
        return times.index(min(times))

    def choose(self, how="measure", measure=None, architecture="sm_90a", subject=SUBJECT, **more):
        return choose(subject, self.candidates, architecture, 132, how, measure or self.measure, **more)


def test_the_quickest_is_taken_and_every_later_process_takes_it(tmp_path):
    bench = Bench()
    assert bench.choose() == (1, 1)
    assert bench.choose() == (1, 1) and bench.choose("kept") == (1, 1) and bench.choose("estimate") == (1, 1)
    assert bench.made == 1 and sorted(bench.ran) == [0, 1, 2]
    code = (
        "from graphdock_triton import compiling; from graphdock_triton.tuning import Subject, choose\n"
        "compiling.use(type('C', (), {'version': 'one', 'keeps': False})())\n"
        "print(choose(Subject('region', 'content', (1024, 1)), None, 'sm_90a', 132, 'kept', None))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "(1, 1)"


def test_nothing_is_found_out_where_nobody_asked():
    bench = Bench()
    assert bench.choose("kept") is None and bench.made == 0


@pytest.mark.parametrize(
    "other",
    [
        {"architecture": "sm_80"},
        {"subject": Subject("region", "other", (1024, 1))},
        {"subject": Subject("region", "content", (2048, 1))},
        "version",
    ],
)
def test_a_choice_is_for_its_content_sizes_architecture_and_compiler_alone(other, compiler):
    bench = Bench()
    bench.choose()
    if other == "version":
        compiler.version = "two"
        other = {}
    assert bench.choose("kept", **other) is None


def test_what_is_not_measured_is_not_kept(tmp_path):
    bench = Bench()
    assert bench.choose(measure=lambda runs: 0) is None
    assert list(tmp_path.rglob("*.choice")) == []


def test_an_estimate_stands_until_something_is_measured():
    bench = Bench()
    assert bench.choose("estimate") == (0, 1), "the fewest registers"
    assert bench.choose("kept") == (0, 1)
    assert bench.choose(measure=lambda runs: 0) == (0, 1)
    assert bench.choose("measure") == (1, 1) and bench.choose("estimate") == (1, 1)


def test_what_does_not_compile_is_no_candidate():
    bench = Bench(registers=(0, 64, 0))
    assert bench.choose() == (1, 1) and bench.ran == [1]
    assert Bench(registers=(0,)).choose(subject=Subject("region", "broken", ())) is None


@pytest.mark.parametrize("damage", [lambda d: b"", lambda d: d[:-1], lambda d: d[:33] + b"!" + d[34:]])
def test_a_damaged_choice_is_made_again(tmp_path, damage):
    bench = Bench()
    bench.choose()
    (path,) = tmp_path.rglob("*.choice")
    path.write_bytes(damage(path.read_bytes()))
    assert bench.choose("kept") is None
    assert bench.choose() == (1, 1) and bench.made == 2


@pytest.mark.parametrize("text", ["[]", "{}", '{"config": ["a"], "by": "measured"}', "nonsense"])
def test_a_choice_of_another_form_is_none(tmp_path, text):
    from graphdock.contracts import write_cache

    write_cache(SUBJECT.path("sm_90a"), text.encode())
    assert Bench().choose("kept") is None


def test_compilers_are_waited_for_only_so_long(monkeypatch):
    never = Future()
    ask = tuning.cubin_of
    monkeypatch.setattr(tuning, "cubin_of", lambda job, arch: never if job.key == "32" else ask(job, arch))
    ticks = iter([0.0, 5.0, 25.0, 26.0, 27.0, 28.0])
    waited = []
    wait = tuning.concurrent.futures.wait

    def noted(futures, timeout):
        waited.append(timeout)
        return wait(futures, 0 if futures[0] is never else 30)

    monkeypatch.setattr(tuning.concurrent.futures, "wait", noted)
    bench = Bench()
    assert bench.choose(seconds=20.0, clock=lambda: next(ticks)) == (1, 1)
    assert waited == [15.0, 0, 0] and 0 not in bench.ran


def test_of_many_candidates_the_guess_and_the_best_estimates_are_measured():
    bench = Bench(registers=(255, 40, 48, 56, 64, 128, 254, 253, 252), seconds=range(20))
    bench.choose()
    assert bench.ran[0] == 0 and len(bench.ran) == 6 and set(bench.ran[1:]) == {1, 2, 3, 4, 5}


def test_a_choice_says_how_it_was_made(tmp_path):
    Bench().choose()
    (path,) = tmp_path.rglob("*.choice")
    assert json.loads(path.read_bytes()[32:]) == {"config": [1, 1], "by": "measured"}
