"""``pytest --graphdock-backend NAME``: conformance of any installed backend, with no test code.

Every project that has graphdock installed loads this module with pytest, so that it imports nothing but pytest until the
option is given. With it, the run consists of the conformance cases and of test files that the command line names.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from graphdock.testing.conformance import Case, Conformance

__all__ = ["ConformanceItem"]

_PROPERTY = "graphdock"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("graphdock", "conformance of graphdock backends")
    group.addoption("--graphdock-backend", metavar="NAME", help="check this backend against the op specs")
    group.addoption("--graphdock-op", metavar="OP", action="append", help="only this op; may be given again")
    group.addoption("--graphdock-report", metavar="FILE", help="write the compliance table as JSON")


def pytest_configure(config: pytest.Config) -> None:
    given = [name for name in ("op", "report") if config.getoption(f"--graphdock-{name}")]
    if config.getoption("--graphdock-backend"):
        config.pluginmanager.register(_Run(config), "graphdock-conformance")
    elif given:
        raise pytest.UsageError(f"--graphdock-{given[0]} needs --graphdock-backend")


class ConformanceCases(pytest.Collector):
    """The collector above all cases; ``kit`` is theirs."""

    kit: Conformance

    def collect(self) -> Iterator[ConformanceItem]:
        ops: list[str] | None = self.config.getoption("--graphdock-op")
        for op in ops or self.kit.ops:
            if not self.kit.has_kernel(op):
                yield ConformanceItem.from_parent(self, name=f"{op}[missing]", op=op)
                continue
            for case in self.kit.cases(op):
                yield ConformanceItem.from_parent(self, name=case.id, op=op, case=case)


class ConformanceItem(pytest.Item):
    """One case; without one, an op that the backend has no kernel for."""

    parent: ConformanceCases

    def __init__(self, *, op: str, case: Case | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self.case = case
        dtype = "-" if case is None else case.dtype
        reason = None if case is None else self.parent.kit.xfail(case)
        self.user_properties.append((_PROPERTY, [op, dtype, reason]))
        if reason is not None:
            # not strict: an exception is stated for all samples of a dtype, and the empty ones may well pass
            self.add_marker(pytest.mark.xfail(reason=reason, strict=False))

    def runtest(self) -> None:
        from graphdock.testing.conformance import Missing

        kit = self.parent.kit
        if self.case is None:
            pytest.skip(f"{kit.backend} has no kernel for {self.name.partition('[')[0]}")
        try:
            kit.check(self.case)
        except Missing as missing:
            pytest.skip(str(missing).partition("\n")[0])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from graphdock.testing import conformance

        if isinstance(excinfo.value, conformance.ConformanceError):
            return f"{excinfo.value}{_raised_at(excinfo.value)}"
        inner = excinfo.traceback.cut(path=conformance.__file__)  # without pytest's own frames
        return excinfo.getrepr(style=style or "short", tbfilter=lambda _: inner)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"conformance {self.name}"


def _raised_at(error: BaseException) -> str:
    """Where a kernel raised what became ``error``; empty when nothing but graphdock's own errors is behind it."""
    from graphdock.errors import GraphdockError

    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    frames = traceback.extract_tb(cause.__traceback__)
    if isinstance(cause, (AssertionError, GraphdockError)) or not frames:
        return ""
    return f"\n  raised at {frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name}"


class _Run:
    """The hooks of a conformance run."""

    def __init__(self, config: pytest.Config) -> None:
        from graphdock.errors import GraphdockError
        from graphdock.testing.conformance import Conformance
        from graphdock.testing.report import Compliance

        try:
            self.kit = Conformance(config.getoption("--graphdock-backend"))
            for op in config.getoption("--graphdock-op") or ():
                next(self.kit.cases(op), None)
        except GraphdockError as error:
            raise pytest.UsageError(str(error)) from error
        self.report = Compliance(self.kit.backend, gradients=self.kit.gradient_kinds())
        #: (op, reason) of a stated exception -> whether a case of it failed
        self.held: dict[tuple[str, str], bool] = {}
        self.target: str | None = config.getoption("--graphdock-report")

    def pytest_ignore_collect(self, collection_path: Path) -> bool:
        """Leave out whatever the command line does not name."""
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        name = f"graphdock-{self.kit.backend}"
        root = ConformanceCases.from_parent(session, name=name, nodeid=name)
        root.kit = self.kit
        items.extend(root.collect())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found: Any = dict(report.user_properties).get(_PROPERTY)
        if found is None or (report.when != "call" and report.passed):
            return
        op, dtype, reason = found
        if hasattr(report, "wasxfail"):
            outcome = "xfail" if report.skipped else "ok"
        else:
            outcome = {"passed": "ok", "failed": "failed", "skipped": "missing"}[report.outcome]
        self.report.add(op, dtype, outcome)
        if reason is not None and outcome != "missing":
            self.held[op, reason] = self.held.get((op, reason), False) or outcome == "xfail"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A stated exception none of whose cases fails any more makes the run fail."""
        if not all(self.held.values()) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"graphdock conformance: {self.kit.backend}")
        for line in [*self.report.lines(), *self.kit.watching.lines()]:
            terminalreporter.write_line(line)
        for (op, reason), holds in self.held.items():
            if not holds:
                terminalreporter.write_line(
                    f"{op} passes, although the manifest expects it to fail: {reason}", red=True
                )
        if self.target is not None:
            self.report.write(self.target)
            terminalreporter.write_line(f"written to {self.target}")
