"""The edges that are drawn for each op (:mod:`graphdock_testing.facts.edges`) under TensorFlow, whose kernels give the same.

Both run the same graph of one op, whose inputs have no static shape, so that TensorFlow's kernel answers and not its shape
function. What it refuses as an invalid argument is not answered here, and what it answers is not refused, unless ``DIFFERS``
says why. TensorFlow is the one of this interpreter, or of the interpreter that ``TENSORFLOW_PYTHON`` names.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from graphdock.config.session_config import SessionConfig
from graphdock.errors import (
    GraphdockError,
    InvalidArgumentError,
    KernelNotFoundError,
    OutOfRangeError,
    ShapeError,
    format_error,
)
from graphdock.graph.graph import Graph
from graphdock.passes.pipeline import simplifications
from graphdock.session.session import Session
from graphdock_testing.bench import run_program
from graphdock_testing.case import Case
from graphdock_testing.conformance import Conformance
from graphdock_testing.facts.edges import ends, free, sizes
from graphdock_testing.facts.settings import arrays_of
from graphdock_testing.numeric import difference
from graphdock_testing.programs import Program, build

from tests.oracle import drawn_peer
from tests.oracle.drawn_explained import DIFFERS

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("google.protobuf")

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)
KIT = Conformance("cpu")
OPS = [op for op in KIT.ops if any(c.kind == "drawn" for c in KIT.cases(op))]


class Peer:
    """TensorFlow in a process of its own."""

    def __init__(self) -> None:
        self.env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", PYTHONWARNINGS="ignore")
        self.env.pop("PYTHONPATH", None)
        found = subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, env=self.env)
        self.there = found.returncode == 0
        self.process: Any = None

    def ask(self, request: Any) -> tuple[str, Any]:
        if self.process is None:
            self.process = subprocess.Popen(
                [PYTHON, drawn_peer.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self.env,
            )
        pickle.dump(request, self.process.stdin)
        self.process.stdin.flush()
        answer: tuple[str, Any] = pickle.load(self.process.stdout)
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def theirs() -> Iterator[Peer]:
    peer = Peer()
    if not peer.there:
        pytest.skip("TensorFlow is not installed")
    yield peer
    peer.close()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.sampled(20)
def test_op(theirs: Peer, op: str) -> None:
    wrong = [text for text in differences(theirs, op) if not any(re.search(p, text) for p, _ in DIFFERS.get(op, ()))]
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:20]])


def differences(peer: Peer, op: str) -> Iterator[str]:
    """A line for each drawn edge of an op where TensorFlow does something else."""
    for case in KIT.cases(op):
        if case.kind != "drawn" or case.kernel:
            continue
        opdef, arrays = KIT.host.ops.get(op), arrays_of(case, "a")
        drawn = [("as written", arrays), *sizes(opdef, arrays)]
        if opdef.traits & {"elementwise", "view"}:
            drawn += ends(opdef, arrays, free(case.sample), zlib.crc32(case.id.encode()))
        for what, edge in drawn:
            flushed = {n: tuple(map(_flushed, a)) if isinstance(a, tuple) else _flushed(a) for n, a in edge.items()}
            found = _differs(peer, case, opdef, flushed)
            if found == "lacks" and what == "as written":
                break
            if found and found not in ("lacks", "ends"):
                shapes = {n: [x.shape for x in each] for n, each in _arrays(edge)}
                yield f"{case.id}: {what}: {found} (of {shapes} {case.sample['attrs'] or ''})"


def _arrays(edge: Any) -> list[tuple[str, tuple[Any, ...]]]:
    return [(n, a if isinstance(a, tuple) else (a,)) for n, a in edge.items() if a is not None]


def _differs(peer: Peer, case: Case, opdef: Any, arrays: Any) -> str | None:
    try:
        program = build(graph := Graph(KIT.host), opdef, arrays, case.attrs, "unranked")
        reads = [v.value() for v in program.variables]
        word, answer = peer.ask(_request(program, graph, reads, arrays))
    except GraphdockError as error:
        return f"can't be written: {error.message}"
    if word in ("lacks", "ends"):
        return word
    nothing = any(not a.size for _, each in _arrays(arrays) for a in each)
    try:
        got = _ours(case, opdef, arrays)
    except KernelNotFoundError:
        return "lacks"
    except (InvalidArgumentError, OutOfRangeError) as error:
        if word != "gives" or nothing and isinstance(error, ShapeError):
            return None
        return f"refused ({error.message}), and TensorFlow gives {[np.shape(a) for a in answer]}"
    except GraphdockError as error:
        return f"fails: {format_error(error)}"
    if word != "gives":
        return None if nothing else f"given, and TensorFlow {word}: {answer[:200]}"
    for i, (a, b) in enumerate(zip(got, answer, strict=True)):
        tolerance = case.data["tolerances"].get(np.asarray(a).dtype.name)
        if found := difference(np.asarray(a), _as_array(b), tolerance):
            return f"output {i}: {found}"
    return None


def _request(program: Program, graph: Graph, reads: list[Any], arrays: Any) -> Any:
    feed = {t.name: a for t, a in program.feed(arrays).items()}
    variables = {name for name, value in program.inputs.items() if hasattr(value, "handle")}
    of_variables = {t.name for t, (name, *_) in program.feeds.items() if name in variables}
    runs = [([t.name for t in program.outputs], {n: a for n, a in feed.items() if n not in of_variables})]
    if program.assigns:
        runs[0][0].append(program.op.name)
        runs = [
            ([o.name for o in program.assigns], {n: feed[n] for n in of_variables}),
            *runs,
            ([r.name for r in reads], {}),
        ]
    return graph.as_graph_def().SerializeToString(), runs


def _ours(case: Case, opdef: Any, arrays: Any) -> list[Any]:
    program = build(graph := Graph(KIT.host), opdef, arrays, case.attrs, "unranked")
    config = SessionConfig(
        backends=("cpu",), passes=dict.fromkeys(simplifications(), False), fallback="allow", shape_policy="generic"
    )
    with Session(graph=graph, config=config, host=KIT.host) as session:
        return run_program(session, program, arrays)


def _flushed(array: Any) -> Any:
    """Without denormal numbers, which TensorFlow's threads take for zero."""
    if array is None or array.dtype.kind not in "fV" or array.dtype.hasobject:
        return array
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(array) < ml_dtypes.finfo(array.dtype).tiny, np.zeros((), array.dtype), array).astype(
            array.dtype
        )


def _as_array(value: Any) -> Any:
    return np.array(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)
