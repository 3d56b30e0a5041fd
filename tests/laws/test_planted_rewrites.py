"""Faults of the classes that random programs met, planted in passes and patterns, in loops and in readers: a generator finds each.

Each runs in a process of its own (``planted_source.py``), in which one generator must fail, of itself: an assertion, or an error
of the step. The table says which generator.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
#: The test of random programs that share what they read.
SHARING = "differential/test_sharing.py::test_what_is_shared_is_as_if_it_were_not"


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
      name: what is wrong, in words.
      module, right, wrong: the text that stands there, once, and what it is replaced by.
      finder: the test, without its parameters: some of them have to fail.
    """

    name: str
    module: str
    right: str
    wrong: str
    finder: str = SHARING


FAULTS = [
    Fault(
        "sums: an addend given twice is added once",
        "graphdock.passes.sums",
        "[total for total in [joined.get(v, v) for v in node.inputs] if total is not None]",
        "list(dict.fromkeys([t for t in [joined.get(v, v) for v in node.inputs] if t is not None]))",
    ),
    Fault(
        "sums: what is read twice is joined",
        "graphdock.passes.sums",
        "reads[value] == 1",
        "reads[value] >= 1",
    ),
    Fault(
        "products: a product by another matrix is joined",
        "graphdock.passes.products",
        "node.requested, node.inputs[1], node.inputs[0].shape",
        "node.requested, node.inputs[0].shape",
    ),
    Fault(
        "products: a product of the next step is joined",
        "graphdock.passes.products",
        "at.append(found[node] + 1)",
        "pass",
    ),
    Fault(
        "products: rows are given back in another order",
        "graphdock.passes.products",
        "zip(alike, make.cut(whole, [rows] * len(alike), 0), strict=True)",
        "zip(alike, make.cut(whole, [rows] * len(alike), 0)[::-1], strict=True)",
    ),
    Fault(
        "cse: operands in another order are the same",
        "graphdock.passes.simplify",
        "tuple(map(id, change.inputs(node)))",
        "tuple(sorted(map(id, change.inputs(node))))",
    ),
    Fault(
        "cse: attributes make no difference",
        "graphdock.passes.simplify",
        "first = _first(by_attrs, key, node)",
        "first = other or node",
    ),
    Fault(
        "algebra: a factor that broadcasts is dropped",
        "graphdock.passes.simplify",
        "other.dtype is not result.dtype or not _same_known_shape(other.shape, result.shape)",
        "other.dtype is not result.dtype",
    ),
    Fault(
        "identities: what broadcasts changes nothing",
        "graphdock.passes.simplify",
        "return found[0] if always or _same_known_shape(found[0].shape, node.outputs[0].shape) else None",
        "return found[0]",
    ),
    Fault(
        "gradients: what arrives at a tensor by two ways is added once",
        "graphdock.gradients.build",
        "for p in parts]\n            found = apply_op(",
        "for p in dict.fromkeys(parts)]\n            found = apply_op(",
    ),
]


def planted(fault: Fault) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PLANTED": json.dumps({"module": fault.module, "right": fault.right, "wrong": fault.wrong}),
        "PYTHONPATH": os.pathsep.join(p for p in (str(TESTS / "laws"), os.environ.get("PYTHONPATH")) if p),
    }
    command = [sys.executable, "-m", "pytest", "-p", "planted_source", "-p", "no:cacheprovider", "-q", "-x"]
    given = [str(TESTS / fault.finder)]
    return subprocess.run([*command, *given], env=environment, cwd=TESTS.parent, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
@pytest.mark.sampled(6)
def test_a_generator_finds_it(fault):
    run = planted(fault)
    assert run.returncode == 1 and "SystemError" not in run.stdout, run.stdout[-3000:] + run.stderr[-2000:]
