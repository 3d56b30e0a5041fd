"""Faults planted in kernels, devices, specs and packages: who finds each, held to a table; none is found by nobody.

A third of them stand on a device with queues. The table is ``tests/golden/planted_faults.txt``.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock_opgen.cli import command as opgen
from planted import bench, checkpoints, devices, events, facts, habits, kernels, lawful, parts, texts
from planted.bench import FINDERS, Fault

GOLDEN = Path(__file__).parents[1] / "golden" / "planted_faults.txt"
RUNNING = [*kernels.faults(), *devices.faults()]
SPECS = texts.spec_faults()
PACKAGES = [*texts.package_faults(), *texts.clash_faults()]
#: Of what debug mode looks at none of: facts, patterns, region compilers, events, executors, passes, placers, forms of
#: graphs and of checkpoints, and what kernels do besides.
PARTS = [*facts.faults(), *parts.faults(), *events.faults(), *lawful.faults(), *checkpoints.faults(), *habits.faults()]
#: Faults of errors themselves.
ERRORS = {"it gives another error", "an error that is not raised", "the fence forgets errors"}
ALL = [*RUNNING, *PARTS, *SPECS, *PACKAGES]

pytestmark = pytest.mark.plain  # the faults choose their own mode


def table(faults: list[Fault]) -> str:
    """Who finds each, and how many each finds."""
    head = f"{'fault':<64}" + "".join(f"{name:>12}" for name in FINDERS)
    rows = [f"{f.id:<64}" + "".join(f"{'x' if n in f.found else '':>12}" for n in FINDERS) for f in faults]
    counts = Counter(n for f in faults for n in f.found)
    total = f"{f'{len(faults)} faults, of which found':<64}" + "".join(f"{counts[n]:>12}" for n in FINDERS)
    nobody = f"found by nobody: {sum(not f.found for f in faults)}"
    return "\n".join(line.rstrip() for line in [head, *rows, total, nobody]) + "\n"


@pytest.mark.parametrize("fault", RUNNING, ids=lambda f: f.id)
@pytest.mark.sampled(48)
def test_a_fault_that_runs_is_found_by_whom_the_table_says(fault):
    place = "cpu" if fault.place == "-" else fault.place
    said = {"conformance": bench.conformance(fault.host()), "debug": bench.debug(fault.host(), place)}
    assert {name for name, lines in said.items() if lines} == fault.found, said
    beside = [line for line in said["conformance"] if "error-" not in line]
    assert beside or fault.name in ERRORS, "it is found for its fault, and not for an error that it does not raise"


@pytest.mark.parametrize("fault", [f for f in RUNNING if " as it was" in f.name], ids=lambda f: f.id)
@pytest.mark.parametrize("finder", ["conformance", "debug"])
@pytest.mark.sampled(2)
def test_an_output_that_is_left_as_it_was_is_told_so_and_not_by_its_poison(fault, finder):
    place = "cpu" if fault.place == "-" else fault.place
    if finder == "debug":
        said = bench.debug(fault.host(), place)
    else:
        said = bench.conformance(fault.host(), only="[float32-0]")
    assert said and all("left elements of its output 'y' as they were" in line for line in said), said


@pytest.mark.parametrize("fault", [f for f in PARTS if f.kind == "habit" and f.text == "threads"], ids=lambda f: f.id)
@pytest.mark.sampled(2)
def test_what_steps_share_is_found_in_every_run(fault):
    with habits.as_it_was():
        assert all(bench.conformance(fault.host(), only="threads-float32") for _ in range(3))


@pytest.mark.parametrize("fault", PARTS, ids=lambda f: f.id)
@pytest.mark.sampled(96)
def test_a_fault_of_a_part_is_found_by_conformance(fault, monkeypatch):
    monkeypatch.setattr("graphdock_testing.laws._CHAIN", 20)
    if fault.kind in lawful.KINDS:
        assert bench.conformance(fault.host(), ops=(), only=f"[{fault.text}]")
    elif fault.kind == "habit":
        with habits.as_it_was():
            assert bench.conformance(fault.host(), only=fault.text or "[float32-0]")
    elif (
        fault.kind == "event"
    ):  # other checks may wait for ever for what such a device forgets: the kit has a time limit
        op, _, late = fault.text.partition("[")
        assert bench.conformance(fault.host(), ops=(op,) if late else (), only=fault.text)
    else:
        assert bench.conformance(fault.host(), ops=(fault.text,) if fault.text else ())


def test_nothing_is_found_of_parts_without_a_fault():
    right = [
        lawful.law_host("register_checkpoint_formats", checkpoints.Boxes()),
        parts.part_host(register_patterns=parts._pattern(parts.right)),
        parts.part_host(register_region_compilers=parts.ReferenceCompiler()),
        events.event_host(),
    ]
    assert [bench.conformance(host, ops=()) for host in right] == [[], [], [], []]


@pytest.mark.parametrize("place", bench.suspects.PLACES)
@pytest.mark.sampled(2)
def test_nothing_is_found_of_a_kernel_without_a_fault(place):
    def make():
        factory = bench.suspects.ChipFactory() if place == "chip" else None
        return bench.make_host(bench.suspects.kernel(place, bench.right), factory=factory)

    assert bench.conformance(make()) == bench.debug(make(), place) == []


@pytest.mark.parametrize("place", devices.right_devices())
@pytest.mark.sampled(2)
def test_nothing_is_found_of_a_device_without_a_fault(place):
    make = devices.right_devices()[place]
    assert bench.conformance(make()) == bench.debug(make(), place) == []


def checked(text: str, folder: Path) -> str:
    """What ``opgen check`` says of a package with this spec."""
    package = folder / "graphdock_planted"
    (package / "specs").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "specs" / "planted.yaml").write_text(text)
    run = CliRunner()
    return "".join([run.invoke(opgen, [command, str(package)]).output for command in ("generate", "check")])


@pytest.mark.parametrize("fault", SPECS, ids=lambda f: f.id)
@pytest.mark.sampled(2)
def test_a_faulty_spec_is_found_by_check(fault, tmp_path):
    assert "planted.yaml:" in checked(fault.text, tmp_path)


def test_check_finds_nothing_in_a_spec_without_a_fault(tmp_path):
    assert "planted.yaml:" not in checked(texts.SPEC, tmp_path)


@pytest.fixture(scope="module")
def ward(builder, tmp_path_factory):
    """What doctor says of all faulty packages together, by plugin."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("ward")
        patch.chdir(folder)
        site = builder.Site(folder / "site")
        patch.syspath_prepend(str(site.folder))
        for fault in PACKAGES:
            site.plugin(fault.text, fault.files["plugin.py"], manifest=fault.files.get("graphdock-plugin.toml"))
            if "twin.toml" in fault.files:
                site.plugin(f"{fault.text}twin", fault.files["plugin.py"], manifest=fault.files["twin.toml"])
        site.plugin("healthy", texts.CODE, manifest=texts.MANIFEST.replace("{name}", "healthy"))
        twins = [f"{fault.text}twin" for fault in PACKAGES if "twin.toml" in fault.files]
        done = CliRunner().invoke(cli, ["doctor", *(fault.text for fault in PACKAGES), *twins, "healthy", "--json"])
        site.forget()
    return {row["plugin"]: row for row in json.loads(done.stdout)["plugins"]}


@pytest.mark.parametrize("fault", PACKAGES, ids=lambda f: f.id)
@pytest.mark.sampled(32)
def test_a_faulty_package_is_found_by_doctor(ward, fault):
    mine = [row for name, row in ward.items() if name == fault.text]
    assert mine and mine[0]["fault"], mine


def test_doctor_finds_nothing_in_a_package_without_a_fault(ward):
    assert ward["healthy"]["stage"] == "registered", ward["healthy"]


def test_the_table_stands_as_it_is_written():
    text = table(ALL)
    assert text == GOLDEN.read_text(encoding="utf-8"), text


def test_there_are_enough_and_none_is_found_by_nobody():
    assert len(ALL) >= 300 and len({f.id for f in ALL}) == len(ALL)
    queued = [f for f in RUNNING if f.place == "queued"]
    assert len(queued) >= 50
    assert all(f.found for f in ALL)
    kinds = {"kernel", "device", "spec", "manifest", "fact", "pattern", "compiler", "event", "clash", "habit"}
    kinds |= set(lawful.KINDS)
    assert {f.kind for f in ALL} == kinds
    assert sum(f.kind in ("fact", "pattern", "compiler", "event", "clash") for f in ALL) >= 60
