"""``pytest --graphdock-backend NAME``: conformance of any installed backend, with no test code.

Every project that has graphdock installed loads this module with pytest, so that it imports nothing but pytest until the
option is given. With it, the run consists of the conformance cases and of test files that the command line names. Cases run in a
process of their own (:mod:`graphdock_testing.isolation`), so that a kernel that crashes is a line; under ``--pdb`` or with
``--graphdock-in-process`` they run here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from graphdock_testing.case import Case, Seen
    from graphdock_testing.isolation import Outcome, Worker

__all__ = ["ConformanceItem"]

_PROPERTY = "graphdock"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("graphdock", "conformance of graphdock backends")
    group.addoption("--graphdock-backend", metavar="NAME", help="check this backend against the op specs")
    group.addoption("--graphdock-op", metavar="OP", action="append", help="only this op; may be given again")
    group.addoption(
        "--graphdock-kernel",
        metavar="NAME",
        action="append",
        help="only this kernel of the backend, by its name or label; may be given again",
    )
    group.addoption(
        "--graphdock-quick",
        action="store_true",
        help="every sample and every dtype of an op, but not all pairs of them",
    )
    group.addoption(
        "--graphdock-strict",
        action="store_true",
        help="fail where the table says that something was never checked: an attribute, a dtype, a mode, a size",
    )
    group.addoption("--graphdock-report", metavar="FILE", help="write the compliance table as JSON")
    group.addoption(
        "--graphdock-timeout", metavar="SECONDS", type=float, default=300.0, help="for one case (default: 300)"
    )
    group.addoption(
        "--graphdock-in-process", action="store_true", help="run the cases in this process, where a crash ends the run"
    )


def pytest_configure(config: pytest.Config) -> None:
    names = ("op", "kernel", "quick", "strict", "report", "in-process")
    given = [name for name in names if config.getoption(f"--graphdock-{name}")]
    if config.getoption("--graphdock-backend"):
        config.pluginmanager.register(_Run(config), "graphdock-conformance")
    elif given:
        raise pytest.UsageError(f"--graphdock-{given[0]} needs --graphdock-backend")


class ConformanceCases(pytest.Collector):
    """The collector above all cases; ``run`` is theirs."""

    run: _Run

    def collect(self) -> Iterator[ConformanceItem]:
        from graphdock_testing.covering import covering

        kit, chosen = self.run.kit, self.run.kernels
        if kit.absent is not None:
            yield ConformanceItem.from_parent(self, name=f"{kit.backend}[no device]", why=kit.absent)
            return
        devices = [] if chosen else [*kit.devices, *kit.parts]
        untested = set(kit.untested)
        ops = [] if kit.of_parts_alone else sorted({*kit.ops, *untested})
        for op in self.run.ops or [*devices, *ops]:
            if op in untested:
                why = f"untested: {op} (its spec has no samples)"
                yield ConformanceItem.from_parent(self, name=f"{op}[untested]", op=op, why=why, outcome="untested")
            if op not in devices and not kit.has_kernel(op) and not kit.answers_for(kit.host.ops.get(op)):
                why = f"{kit.backend} has no kernel for {op}"
                yield ConformanceItem.from_parent(self, name=f"{op}[missing]", op=op, why=why)
                continue
            cases = kit.cases(op, chosen)
            for case in covering(cases) if self.run.quick else cases:
                yield ConformanceItem.from_parent(self, name=case.id, op=op, case=case)


class ConformanceItem(pytest.Item):
    """One case; without one, what can't be checked, and ``why``: an op without a kernel or samples, or a backend without a device.

    ``outcome`` is what the table says of it; default: by how it ends.
    """

    parent: ConformanceCases

    def __init__(
        self, *, op: str = "", case: Case | None = None, why: str = "", outcome: str = "", **fields: Any
    ) -> None:
        super().__init__(**fields)
        self.case, self.why = case, why
        dtype = "-" if case is None else case.dtype
        reason = None if case is None else self.parent.run.kit.xfail(case)
        if op:
            self.user_properties.append((_PROPERTY, [op, dtype, reason, "" if case is None else case.kernel, outcome]))
        if reason is not None:
            # not strict: an exception is stated for all samples of a dtype, and the empty ones may well pass
            self.add_marker(pytest.mark.xfail(reason=reason, strict=False))

    def runtest(self) -> None:
        from graphdock_testing.case import Seen

        if self.case is None:
            pytest.skip(self.why)
        outcome = self.parent.run.check(self.case)
        if outcome.kind in ("missing", "refused"):
            if self.case.kind == "law" and outcome.kind == "refused":
                self.user_properties[0][1][4] = "refused"  # type: ignore[index]
            pytest.skip(outcome.text)
        elif outcome.kind == "untested":
            self.user_properties[0][1][4] = "untested"  # type: ignore[index]
            self.parent.run.reasons.setdefault(self.case.op, []).append(outcome.text)
            pytest.skip(outcome.text)
        elif outcome.kind != "ok":
            raise _Failed(outcome.text)
        if outcome.seen is not None and self.case.kind in ("value", "edge", "drawn"):
            known = self.parent.run.seen.setdefault(self.case.op, Seen())
            known.modes |= outcome.seen.modes
            known.size = max(known.size, outcome.seen.size)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, _Failed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"conformance {self.name}"


class _Failed(AssertionError):
    """A case failed; the text is all there is to say."""


class _Run:
    """The hooks of a conformance run.

    Attributes:
      ops, kernels: those that the command line names. quick: whether a covering choice of cases is enough.
    """

    def __init__(self, config: pytest.Config) -> None:
        from graphdock.errors import GraphdockError

        from graphdock_testing.conformance import Conformance
        from graphdock_testing.isolation import Worker
        from graphdock_testing.report import Compliance

        self.ops: list[str] = list(config.getoption("--graphdock-op") or ())
        self.kernels: list[str] = list(config.getoption("--graphdock-kernel") or ())
        self.quick = bool(config.getoption("--graphdock-quick"))
        try:
            self.kit = Conformance(config.getoption("--graphdock-backend"))
            for op in self.ops:
                next(self.kit.cases(op), None)
            self._check_kernels()
        except GraphdockError as error:
            raise pytest.UsageError(str(error)) from error
        self.report = Compliance(
            self.kit.backend,
            gradients={} if self.kit.of_parts_alone else self.kit.gradient_kinds(),
            against=self.kit.against,
        )
        #: Op, pattern or compiler of which nothing could be checked -> why.
        self.reasons: dict[str, list[str]] = self.report.reasons
        #: Op -> what the steps of its cases reached.
        self.seen: dict[str, Seen] = {}
        self.strict = bool(config.getoption("--graphdock-strict"))
        self.gaps: list[str] = []
        #: (op, reason) of a stated exception -> whether a case of it failed
        self.held: dict[tuple[str, str], bool] = {}
        self.target: str | None = config.getoption("--graphdock-report")
        here = config.getoption("--graphdock-in-process") or config.getoption("usepdb", False)
        self.worker: Worker | None = (
            None if here else Worker(self.kit.backend, self.kernels, config.getoption("--graphdock-timeout"))
        )

    def _check_kernels(self) -> None:
        """Raise unless each kernel that the command line names is one of the backend's."""
        from graphdock.errors import NotFoundError, did_you_mean

        mine = [r for op in self.kit.ops for r in self.kit.kernels(op)]
        known = {n for r in mine for n in (r.full_name, r.kernel.short_name, r.kernel.label) if n}
        for name in self.kernels:
            if name not in known:
                raise NotFoundError(f"{self.kit.backend} has no kernel {name!r}", hint=did_you_mean(name, known))

    def check(self, case: Case) -> Outcome:
        from graphdock_testing.isolation import outcome_of

        return outcome_of(self.kit, case) if self.worker is None else self.worker.check(case)

    def pytest_ignore_collect(self, collection_path: Path) -> bool:
        """Leave out whatever the command line does not name."""
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        name = f"graphdock-{self.kit.backend}"
        root = ConformanceCases.from_parent(session, name=name, nodeid=name)
        root.run = self
        items.extend(root.collect())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found: Any = dict(report.user_properties).get(_PROPERTY)
        if found is None or (report.when != "call" and report.passed):
            return
        op, dtype, reason, kernel, stated = found
        if hasattr(report, "wasxfail"):
            outcome = "xfail" if report.skipped else "ok"
        else:
            lacks = stated or ("refused" if kernel and not self.kernels else "missing")
            outcome = {"passed": "ok", "failed": "failed", "skipped": lacks}[report.outcome]
        self.report.add(op, dtype, outcome)
        if reason is not None and outcome not in ("missing", "refused"):
            self.held[op, reason] = self.held.get((op, reason), False) or outcome == "xfail"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A stated exception none of whose cases fails any more makes the run fail; under ``--graphdock-strict`` any gap."""
        if self.kit.absent is None and not self.kernels:
            for op, seen in self.seen.items():
                self.gaps += self.kit.gaps(op, self.report.cells.get(op, {}), seen)
        self.report.gaps = [*self.gaps, *self.report.untested()]
        gap = self.strict and self.report.gaps
        if (gap or not all(self.held.values())) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self) -> None:
        if self.worker is not None:
            self.worker.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"graphdock conformance: {self.kit.backend}")
        if self.kit.absent is not None:
            terminalreporter.write_line(f"{self.kit.backend}: nothing was checked: {self.kit.absent}")
            return
        watched = self.kit.watching.lines() if self.worker is None else self.worker.lines()
        for line in [*self.report.lines(), *watched]:
            terminalreporter.write_line(line)
        for gap in self.gaps:
            terminalreporter.write_line(f"never checked: {gap}", red=self.strict)
        for (op, reason), holds in self.held.items():
            if not holds:
                terminalreporter.write_line(
                    f"{op} passes, although the manifest expects it to fail: {reason}", red=True
                )
        if self.target is not None:
            self.report.write(self.target)
            terminalreporter.write_line(f"written to {self.target}")
