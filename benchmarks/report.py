"""Outcomes as a table to read and as JSON to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.harness import Outcome

__all__ = ["as_json", "as_table", "duration"]

_SUBJECT = "graphdock"


def duration(seconds: float) -> str:
    """Seconds with a unit that suits: 812 ns, 5.43 us, 1.90 ms, 5.40 s."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def as_table(outcome: Outcome) -> str:
    """The program's figures, one subject per line, every subject named; then its bars."""
    program, timings = outcome.program, outcome.timings
    mine = timings.get(_SUBJECT)
    rows = [
        (
            "subject",
            f"median/{program.unit}",
            f"min/{program.unit}",
            f"{_SUBJECT}/subject",
            "of minima",
            "to first result",
        )
    ]
    for subject in sorted(timings, key=lambda name: timings[name].median):
        timing = timings[subject]
        ratios = ("-", "-")
        if mine is not None:
            ratios = (f"{mine.ratio_to(timing):.3f}", f"{mine.minimum / timing.minimum:.3f}")
        first = duration(outcome.first_seconds[subject]) if subject in outcome.first_seconds else "-"
        rows.append((subject, duration(timing.median), duration(timing.minimum), *ratios, first))
    lines = [f"{program.name}: {program.summary}", *("  " + line for line in _columns(rows))]
    for subject, parts in outcome.parts.items():
        lines.append(f"  {subject}, by part: " + ", ".join(f"{name} {duration(s)}" for name, s in parts.items()))
    lines += [f"  {subject}: {reason}" for subject, reason in (outcome.absent | outcome.wrong).items()]
    lines += [f"  {subject}: failed: {failure.reason}" for subject, failure in outcome.failed.items()]
    for verdict in outcome.verdicts:
        bar = verdict.bar
        found = "" if verdict.ratio is None else f": {verdict.ratio:.3f} of {verdict.peer}"
        more = f" and {duration(bar.allowance)}" if bar.allowance else ""
        note = f" ({bar.note})" if bar.note else ""
        lines.append(
            f"  {bar.row} {bar.subject} at most {bar.at_most:g} of {' or '.join(bar.peers)}{more}{note}{found}"
            f"  {verdict.word}"
        )
    return "\n".join(lines)


def as_json(benchmark: str, outcomes: Sequence[Outcome], facts: Mapping[str, object]) -> dict[str, object]:
    """The same as plain data, with every burst; times in seconds per unit."""
    return {
        "benchmark": benchmark,
        "machine": dict(facts),
        "programs": [
            {
                "program": outcome.program.name,
                "summary": outcome.program.summary,
                "unit": outcome.program.unit,
                "rtol": outcome.program.rtol,
                "atol": outcome.program.atol,
                "timings": {
                    subject: {
                        "median": timing.median,
                        "minimum": timing.minimum,
                        "burst_medians": list(timing.medians),
                        "burst_minima": list(timing.minima),
                        "to_first_result": outcome.first_seconds.get(subject),
                        "versions": outcome.versions.get(subject, {}),
                    }
                    for subject, timing in outcome.timings.items()
                },
                "parts": {subject: dict(parts) for subject, parts in outcome.parts.items()},
                "absent": dict(outcome.absent),
                "wrong": dict(outcome.wrong),
                "failed": {subject: failure.reason for subject, failure in outcome.failed.items()},
                "bars": [
                    {
                        "row": verdict.bar.row,
                        "subject": verdict.bar.subject,
                        "peers": list(verdict.bar.peers),
                        "best_peer": verdict.peer,
                        "at_most": verdict.bar.at_most,
                        "note": verdict.bar.note,
                        "ratio": verdict.ratio,
                        "verdict": verdict.word,
                    }
                    for verdict in outcome.verdicts
                ],
            }
            for outcome in outcomes
        ],
    }
