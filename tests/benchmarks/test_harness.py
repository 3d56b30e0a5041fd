"""The harness, with real worker processes and programs that need no framework. Nothing here asserts a time."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

from benchmarks import cli, compilation, environments, networks, peoples_generators, peoples_networks, setup, tutorials
from benchmarks.harness import PAUSE_SECONDS, Outcome, Timing, disagreement, judge, orders, run_program
from benchmarks.process import WorkerFailure, WorkerProcess, Workers
from benchmarks.program import Bar, Case, Program, framework_of, side_by_side
from benchmarks.report import as_json, as_table, duration
from benchmarks.worker import burst, digest

HERE = Path(__file__).parent
MODULES = (
    "seed_step",
    "null_step",
    "chain",
    "while_loop",
    "large_graph",
    "planning",
    "import_time",
    "compilation",
    "products",
    "native_kernel",
    "summaries",
    "checkpoint",
    "memory",
)


def interpreter(framework: str) -> Path | None:
    return None if framework == "gone" else Path(sys.executable)


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, Program]]:
    sys.path.insert(0, str(HERE))
    try:
        module = importlib.import_module("fake_programs")
    finally:
        sys.path.remove(str(HERE))
    yield {program.name: program for program in module.PROGRAMS}


def run(program: Program, wanted: object = lambda _: True, sittings: int = 1) -> Outcome:
    with Workers(program.builders, wanted, interpreter, [HERE]) as workers:  # type: ignore[arg-type]
        return run_program(program, "fake_programs", workers, rounds=3, seconds=0.002, sittings=sittings, pause=0)


def test_subjects_that_agree_are_timed_and_a_missing_one_is_named(programs: dict[str, Program]) -> None:
    outcome = run(programs["agree"])
    assert set(outcome.timings) == {"graphdock", "numpy", "peer/noisy"}
    assert all(len(timing.medians) == 3 for timing in outcome.timings.values())
    assert outcome.absent == {"gone": "missing: not installed; python -m benchmarks.setup gone"}
    assert not outcome.wrong and not outcome.failed
    table = as_table(outcome)
    for subject in programs["agree"].builders:
        assert re.search(rf"^  {re.escape(subject)}\b", table, re.MULTILINE), table
    assert "T1 graphdock at most 1e+09 of numpy or peer/noisy" in table and table.count("pass") == 1
    assert "T2 graphdock at most 1 of gone  not judged" in table


def test_a_subject_with_another_result_is_reported_and_not_timed(programs: dict[str, Program]) -> None:
    outcome = run(programs["differ"])
    assert set(outcome.timings) == {"numpy", "peer"}  # 1e-5 off: within rtol 1e-4
    assert outcome.wrong == {
        "graphdock": "wrong result: check value 0 is 5.05, expected 5 (rtol 0.0001, atol 1e-06), numpy is the reference"
    }
    assert "wrong result" in as_table(outcome)
    assert outcome.verdicts[0].word == "not judged"


def test_failures_keep_their_cause_and_stop_nobody_else(programs: dict[str, Program]) -> None:
    outcome = run(programs["fail"])
    assert set(outcome.timings) == {"numpy"}
    assert outcome.absent == {"graphdock": "missing: no backend 'llvm'; pip install graphdock-llvm"}
    assert outcome.failed["broken"].reason == "ended with exit code 1: LookupError: no such op"
    assert "Traceback" in outcome.failed["broken"].detail
    assert outcome.failed["deadly"].reason == "ended with exit code 7: no output"
    assert outcome.failed["broken_later"].reason.endswith("ArithmeticError: worn out")
    assert as_table(outcome).count("failed:") == 3


def test_sittings_use_fresh_processes_and_add_up(programs: dict[str, Program]) -> None:
    outcome = run(programs["agree"], sittings=2)
    assert all(len(timing.medians) == 6 for timing in outcome.timings.values())
    assert len(outcome.timings) == 3 and not outcome.wrong  # a process that had counted on would give another value
    again = run(programs["fail"], sittings=2)
    assert set(again.timings) == {"numpy"} and set(again.failed) == {"broken", "deadly", "broken_later"}


def test_each_round_has_an_order_of_its_own_the_same_in_every_run() -> None:
    subjects = ["a", "b", "c", "d"]
    found = list(orders(subjects, 15))
    assert found == list(orders(subjects, 15)) and len(found) == 15
    assert all(sorted(order) == subjects for order in found)
    row = [subject for order in found for subject in order]
    for subject in subjects:  # by turns: each comes first, and each other one goes before it
        before = {first for first, second in zip(row, row[1:], strict=False) if second == subject}
        assert before >= {*subjects} - {subject} and any(order[0] == subject for order in found)
    assert list(orders(["alone"], 2)) == [["alone"], ["alone"]]


def test_a_pause_goes_before_every_burst(programs: dict[str, Program], monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    monkeypatch.setattr("benchmarks.harness.sleep", lambda seconds: happened.append(f"rest {seconds:g}"))
    ask = WorkerProcess.ask

    def noted(worker: WorkerProcess, do: str, deadline: float, **arguments: object) -> dict[str, object]:
        if do == "burst":
            happened.append(worker.subject)
        return ask(worker, do, deadline, **arguments)

    monkeypatch.setattr(WorkerProcess, "ask", noted)
    program = programs["differ"]
    with Workers(program.builders, interpreter=interpreter, paths=[HERE]) as workers:
        run_program(program, "fake_programs", workers, rounds=3, seconds=0.001)
    expected = [subject for order in orders(["numpy", "peer"], 3) for subject in order]  # graphdock's value is wrong
    assert happened == [word for subject in expected for word in (f"rest {PAUSE_SECONDS:g}", subject)]
    assert PAUSE_SECONDS > 0.2  # what OpenMP's and OpenBLAS's threads spin at most


def test_a_worker_finds_what_its_framework_needs_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    for subject, value in (("tensorflow/flow_v2", 1.0), ("jax", 0.0)):
        with WorkerProcess(subject, Path(sys.executable), [HERE]) as worker:
            worker.ask("prepare", 60, module="fake_programs", program="told")
            assert worker.ask("check", 60)["values"] == [value]


def test_the_extra_of_the_project_names_what_the_environments_hold() -> None:
    project = tomllib.loads((environments.REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    held = {name.partition("==")[0] for names in environments.PEERS.values() for name in names}
    assert set(project["optional-dependencies"]["bench"]) | {"numpy"} == held
    assert set(environments.VARIABLES) <= set(environments.PEERS)


def test_a_worker_that_died_is_started_again_for_the_next_program(programs: dict[str, Program]) -> None:
    with Workers(["broken", "numpy"], interpreter=interpreter, paths=[HERE]) as workers:
        first = workers.get("broken")
        assert first is not None
        with pytest.raises(WorkerFailure):
            first.ask("prepare", 60, module="fake_programs", program="fail")
        second = workers.get("broken")
        assert second is not None and second is not first and second.alive


def test_a_worker_that_does_not_answer_is_ended() -> None:
    worker = WorkerProcess("numpy", Path(sys.executable))
    with pytest.raises(WorkerFailure, match="no answer within 0 s"):
        worker.answer(0)  # nothing was asked
    assert not worker.alive


def test_peers_left_out_by_the_user_are_named(programs: dict[str, Program]) -> None:
    outcome = run(programs["agree"], cli.wanted(frozenset({"numpy"})))
    assert set(outcome.timings) == {"graphdock", "numpy"}
    assert outcome.absent == {"peer/noisy": "not asked for (--peers)", "gone": "not asked for (--peers)"}


def test_subjects_of_graphdock_that_are_named_are_the_only_ones_of_it() -> None:
    wants = cli.wanted(frozenset({"graphdock/onednn", "tensorflow"}))
    asked = ("graphdock", "graphdock/llvm", "graphdock/onednn", "against", "tensorflow", "tensorflow/xla", "jax")
    assert [s for s in asked if wants(s)] == ["graphdock/onednn", "tensorflow", "tensorflow/xla"]


def test_another_checkout_runs_the_same_program_with_its_own_packages(
    programs: dict[str, Program], tmp_path: Path
) -> None:
    program = side_by_side(programs["agree"])
    assert program.bars[-1].peers == ("against",)
    assert set(run(program).timings) == {"graphdock", "numpy", "peer/noisy", "against"}
    text = (HERE / "fake_programs.py").read_text(encoding="utf-8")
    (tmp_path / "fake_programs.py").write_text(text.replace("total[0] += step", "total[0] -= step"), encoding="utf-8")
    mine = cli.wanted(frozenset())
    with Workers(program.builders, mine, interpreter, [HERE], [tmp_path]) as workers:
        outcome = run_program(program, "fake_programs", workers, rounds=1, seconds=0.001, pause=0)
    assert set(outcome.timings) == {"graphdock"} and set(outcome.wrong) == {"against"}


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert environments.packages_of(environments.REPOSITORY)[0] == environments.REPOSITORY / "host"
    with pytest.raises(SystemExit):
        cli.parse("null_step", ["scalar"], ["--against", str(tmp_path)], rounds=1, seconds=0.1)
    assert "is no checkout of graphdock" in capsys.readouterr().err


def test_parts_of_a_call_are_shown_and_kept(programs: dict[str, Program]) -> None:
    outcome = run(programs["parts"])
    assert outcome.parts == {"graphdock": {"first": 2e-6, "second": 0.5}}
    assert outcome.timings["graphdock"].medians == (1.0, 1.0, 1.0)  # by the program's own clock
    assert "graphdock, by part: first 2 us, second 500 ms" in as_table(outcome)
    assert as_json("fake", [outcome], {})["programs"][0]["parts"] == outcome.parts  # type: ignore[index]


def test_json_holds_every_burst_and_every_verdict(programs: dict[str, Program]) -> None:
    data = json.loads(json.dumps(as_json("fake", [run(programs["agree"])], {"cpu": "a chip"})))
    assert data["machine"] == {"cpu": "a chip"}
    (program,) = data["programs"]
    assert len(program["timings"]["numpy"]["burst_medians"]) == 3
    assert [bar["verdict"] for bar in program["bars"]] == ["pass", "not judged"]


def test_ratios_are_made_within_a_round() -> None:
    # A machine that gets slower after the first round changes no ratio.
    mine, theirs = Timing((4.0, 10.0, 10.0), (4.0, 9.0, 9.0)), Timing((8.0, 20.0, 20.0), (8.0, 18.0, 18.0))
    assert mine.ratio_to(theirs) == 0.5
    verdict = judge(
        Bar("P", ("slow", "fast", "gone"), 0.4),
        {"graphdock": mine, "fast": theirs, "slow": Timing((99.0,) * 3, (99.0,))},
    )
    assert (verdict.peer, verdict.ratio, verdict.word) == ("fast", 0.5, "MISS")
    assert judge(Bar("P", ("fast",), 0.5), {"graphdock": mine, "fast": theirs}).word == "pass"
    assert judge(Bar("P", ("fast",), 0.5), {"fast": theirs}).word == "not judged"


def test_a_bar_is_not_judged_by_timings_far_above_their_minimum() -> None:
    quiet, stalled = Timing((2.0, 2.0, 2.1), (1.0, 1.9, 2.0)), Timing((400.0, 390.0, 2.5), (2.0, 2.0, 2.0))
    verdict = judge(Bar("P", ("peer",), 1.0), {"graphdock": quiet, "peer": stalled})
    assert verdict.word == "noisy" and verdict.ratio is not None and verdict.ratio < 0.01
    assert judge(Bar("P", ("peer",), 1.0), {"graphdock": quiet, "peer": quiet}).word == "pass"


def test_burst_divides_by_the_units_of_a_call_and_times_single_calls_once() -> None:
    calls = []
    single = burst(Case(lambda: calls.append(1), list, per_call=4), seconds=10.0, group=1, once=True)
    assert len(calls) == 1 and single["calls"] == 1
    assert single["minimum"] == single["median"] > 0


def test_digest_tells_arrays_apart() -> None:
    small, large = [1.0, 2.0], [float(i) for i in range(100)]
    assert digest([small]) == small
    assert len(digest([large])) == 3
    swapped = [large[1], large[0], *large[2:]]
    assert disagreement(digest([swapped]), digest([large]), rtol=1e-7, atol=0.0) is not None  # same sum, other order
    assert disagreement([float("nan")], [float("nan")], 1.0, 1.0) is not None
    assert disagreement([1.0], [1.0, 2.0], 1.0, 1.0) == "1 check values, expected 2"


def test_durations_read_well() -> None:
    assert [duration(s) for s in (2.5, 0.0019, 5.43e-6, 8.12e-7)] == ["2.5 s", "1.9 ms", "5.43 us", "812 ns"]


@pytest.mark.parametrize("name", MODULES)
def test_every_benchmark_declares_what_it_needs_without_a_framework(name: str) -> None:
    source = (environments.REPOSITORY / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    top = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    top |= {str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not {module.partition(".")[0] for module in top} & {"numpy", "graphdock", *environments.PEERS}
    module = importlib.import_module(f"benchmarks.{name}")
    for program in getattr(module, "PROGRAMS", ()):  # import_time has none: it starts processes of its own
        known = {"graphdock", "numpy", *environments.PEERS}
        assert {framework_of(subject) for subject in program.builders} <= known
        assert program.reference in program.builders
        for bar in program.bars:
            assert {bar.subject, *bar.peers} <= set(program.builders), bar
            assert f"| {bar.row} |" in (environments.REPOSITORY / "benchmarks" / "README.md").read_text(
                encoding="utf-8"
            )


def test_an_interrupted_environment_counts_as_missing(tmp_path: Path) -> None:
    python = tmp_path / "jax" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert environments.interpreter_of("jax", tmp_path) is None
    (tmp_path / "jax" / "installed.txt").write_text("jax==1\n", encoding="utf-8")
    assert environments.interpreter_of("jax", tmp_path) == python
    assert environments.interpreter_of("numpy", tmp_path) == Path(sys.executable)


def test_setup_refuses_an_unknown_peer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        setup.main(["theano"])
    assert ended.value.code == 2
    assert "there are tensorflow, torch, jax" in capsys.readouterr().err


def test_all_together_runs_each_benchmark_of_the_table_but_three() -> None:
    table = (environments.REPOSITORY / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert sorted([*cli.BENCHMARKS, "cliffs", "data_parallel", "process_faults"]) == sorted(rows)


def test_programs_of_tutorials_differ_where_numbers_or_words_do() -> None:
    lines = ["step 0 loss 0.500000", "accuracy 0.9000"]
    assert tutorials.difference(lines, lines) == (0.0, None)
    greatest, wrong = tutorials.difference(["step 0 loss 0.500010", lines[1]], lines)
    assert wrong is None and greatest == pytest.approx(1e-5)
    assert tutorials.difference(["step 0 loss 0.510000", lines[1]], lines)[1] == "wrong result: 0.51 for 0.5"
    for others in (lines[:1], ["step 1 loss 0.500000", lines[1]]):
        assert tutorials.difference(others, lines)[1] == "wrong result: it prints other lines"
    assert {program.name for program in tutorials.PROGRAMS[1:]} == {
        path.stem for path in tutorials.SCRIPTS.glob("*.py")
    }


def test_the_command_line_runs_bare_numpy_and_writes_json(tmp_path: Path) -> None:
    target = tmp_path / "null.json"
    command = [sys.executable, "-m", "benchmarks.null_step", "--rounds", "1", "--seconds", "0.001", "--pause", "0"]
    command += ["--peers", "numpy", "--programs", "concat", "--json", str(target)]
    ended = subprocess.run(command, cwd=environments.REPOSITORY, capture_output=True, text=True, check=False)
    assert "machine: " in ended.stdout and "load average" in ended.stdout, ended.stderr
    (program,) = json.loads(target.read_text(encoding="utf-8"))["programs"]
    assert "numpy" in program["timings"] and program["absent"]["jax"] == "not asked for (--peers)"
    narrow = [bar["at_most"] for bar in program["bars"]]
    ended = subprocess.run(
        [*command, "--busy"], cwd=environments.REPOSITORY, capture_output=True, text=True, check=True
    )
    (program,) = json.loads(target.read_text(encoding="utf-8"))["programs"]
    assert [bar["at_most"] for bar in program["bars"]] == [1.5 * bar for bar in narrow] and "busy)" in ended.stdout


def test_thirty_ragged_shapes_make_the_objects_of_one(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    counts = compilation._fresh("ragged_objects()", str(tmp_path))
    assert 0 < counts["first"] == counts["last"]


def test_a_network_says_which_kernels_its_step_spends_its_time_in() -> None:
    """The dearest first, the others together; they are looked for once."""
    with tf.Graph().as_default():
        case = networks.in_session(tf, tf.Session, "mlp", {"batch": 256, "inputs": 64, "hidden": 256}, "Adam")
        parts = case.parts()
        assert list(parts)[-1] == "others" and len(parts) == networks.SHOWN + 1
        assert {"cpu.mat_mul", "cpu.resource_apply_adam"} <= set(parts)
        named = [seconds for name, seconds in parts.items() if name != "others"]
        assert named == sorted(named, reverse=True) and min(parts.values()) > 0
        assert case.parts() is parts


@pytest.mark.parametrize(
    "program", [*peoples_networks.PROGRAMS[1:], *peoples_generators.PROGRAMS[1:]], ids=lambda p: p.name
)
def test_networks_of_people_run(program) -> None:
    values = program.builders["graphdock"]().values()
    assert all(np.isfinite(value).all() for value in values)
    assert program.builders.keys() - {"graphdock/llvm"} == {"graphdock", "tensorflow"}
