"""Predictions beside a step: what the cost model says of a network's step after one traced step, and what the next one takes.

    python -m benchmarks.predictions [mlp ...] [--rounds 5]

A round is a session that knows no times: a step that loads modules, a traced one, a prediction, and the step that it is of. Seconds
are those of the step's kernels and transfers, as traces tell them. A row says how far the sum of all predictions is from the
step's, which part of its time is in nodes whose own prediction is within a quarter, and of which part nothing was known: the
medians of all rounds, and how far off the rounds were. The aims are 15 % summed, 25 % a node. The same step takes longer one time
than the other, on a busy machine by half; ``again`` is how far apart the two traced steps of a round were, which no prediction
from the first can better.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

from benchmarks.frameworks import graphdock
from benchmarks.networks import OPTIMIZERS, PROGRAMS

__all__ = ["NETWORKS", "Compared", "compare", "main"]

NETWORKS = ("mlp", "lstm_lm", "transformer", "alexnet")


class Compared(NamedTuple):
    """One step beside what was predicted of it: ``predicted`` and ``measured`` seconds of all nodes, the ``near`` part of the time,
    in nodes within a quarter, and the ``unknown`` part."""

    predicted: float
    measured: float
    near: float
    unknown: float

    @property
    def error(self) -> float:
        """Error of the sum; below 0 where too little was predicted."""
        return self.predicted / self.measured - 1.0


def compare(predicted: Mapping[Any, float | None], measured: Mapping[Any, float]) -> Compared:
    """Compare predictions with a step, node by node; a node of the step that has no prediction is unknown."""
    whole = sum(measured.values())
    known = {node: seconds for node, seconds in predicted.items() if seconds is not None and node in measured}
    near = sum(measured[n] for n, s in known.items() if abs(s - measured[n]) <= 0.25 * measured[n])
    unknown = sum(seconds for node, seconds in measured.items() if node not in known)
    return Compared(sum(known.values()) + unknown, whole, near / whole, unknown / whole)


def _rounds(name: str, count: int) -> list[tuple[Compared, float]]:
    """Each round's comparison, and the time of its first traced step over that of its second."""
    from benchmarks.network_sessions import build

    tf = graphdock()
    from graphdock.plugin.host import Host

    shape: Any = next(p for p in PROGRAMS if p.name == name).builders["jax"]  # which has them by name, as all have
    shape = shape.keywords
    with tf.Graph().as_default():
        graph = build(tf, shape["network"], shape["sizes"])
        (loss,) = graph.losses
        optimizer = getattr(tf.train, f"{shape['optimizer']}Optimizer")(**OPTIMIZERS[shape["optimizer"]])
        fetches = [loss, optimizer.minimize(loss)]
        found = []
        for _ in range(count):
            with (
                tempfile.TemporaryDirectory() as folder,
                mock.patch("graphdock.measured_times.cache_dir", partial(Path, folder)),
                tf.Session(host=Host()) as session,
            ):
                session.run(tf.global_variables_initializer())
                session.run(fetches, graph.feed)
                first = _traced(tf, session, fetches, graph.feed)
                predicted: dict[Any, float | None] = {}
                for row in session.explain(fetches, graph.feed).rows:
                    key = row.node, row.op
                    predicted[key] = None if row.seconds is None else (predicted.get(key) or 0.0) + row.seconds
                second = _traced(tf, session, fetches, graph.feed)
            found.append((compare(predicted, second), sum(first.values()) / sum(second.values())))
        return found


def _traced(tf: Any, session: Any, fetches: Any, feed: Any) -> Counter[Any]:
    """Seconds of a step's nodes, by name and op."""
    metadata = tf.RunMetadata()
    session.run(fetches, feed, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    spent: Counter[Any] = Counter()
    for event in metadata.events:
        if event.kind in ("kernel", "copy"):
            spent[event.name, event.op] += event.seconds
    return spent


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.predictions", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--rounds", type=int, default=5, help="how many sessions predict a step each")
    given = parser.parse_args(arguments)
    print(
        f"{'network':12} {'predicted':>11} {'measured':>11} {'off':>7} {'again':>7} {'within 25 %':>12} {'unknown':>8}  rounds"
    )
    for name in given.networks:
        found = _rounds(name, given.rounds)
        each = Compared(*(median(values) for values in zip(*(c for c, _ in found), strict=True)))
        off, again = median(c.error for c, _ in found), median(ratio - 1.0 for _, ratio in found)
        print(
            f"{name:12} {each.predicted * 1e3:8.2f} ms {each.measured * 1e3:8.2f} ms {off:+7.1%} {again:+7.1%} "
            f"{each.near:12.0%} {each.unknown:8.1%}  {' '.join(f'{c.error:+.1%}' for c, _ in found)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
