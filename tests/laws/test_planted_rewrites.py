"""Faults of the classes that random programs met, planted in passes and patterns, in loops, in readers and in what a step does with
a caller's arrays: a generator finds each.

Each runs in a process of its own (``planted_source.py``), in which one generator must fail, of itself: an assertion, or an error
of the step. The table says which generator.
"""

from __future__ import annotations

import importlib.util
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
#: The test of random programs with all that a caller owns.
OWNERSHIP = "differential/test_ownership.py::test_what_a_caller_owns_stays_his"

#: The test of random loops over TensorArrays.
LISTS = "data/passes/test_loop_lists.py::test_random_loops"
#: The test of gradients of gradients through random conds.
CONDS = "differential/test_random_conds.py::test_gradients_of_gradients_of_conds"

#: The test of messages that lie: graphs, SavedModels, event files. Its families that are long, and those of checkpoints.
MESSAGES = "laws/test_lying_messages.py::test_messages_that_lie"
LONG_CHECKPOINTS = "laws/test_lying_checkpoints.py::test_reading_takes_steps_and_bytes_in_proportion_to_the_files"
LONG_GRAPHS = "laws/test_lying_graphs.py::test_an_import_takes_steps_and_memory_in_proportion_to_the_file"
#: The test of checkpoints whose checksums fit.
CHECKPOINTS = "laws/test_random_checkpoints.py::test_what_is_read_is_what_is_said"
#: Random calls with operands of no elements, beside what TensorFlow answered.
EMPTIES = "differences/test_empties.py"


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
        "graphdock_fusion.passes.flatten_sums",
        "[total for total in [joined.get(v, v) for v in node.inputs] if total is not None]",
        "list(dict.fromkeys([t for t in [joined.get(v, v) for v in node.inputs] if t is not None]))",
    ),
    Fault(
        "sums: what is read twice is joined",
        "graphdock_fusion.passes.flatten_sums",
        "reads[value] == 1",
        "reads[value] >= 1",
    ),
    Fault(
        "lists: the way back reads rows from the first to the last",
        "graphdock_data.passes.trips",
        "made.step, not made.backwards",
        "made.step, made.backwards",
        LISTS,
    ),
    Fault(
        "lists: what a loop may end before is taken for what it ends with",
        "graphdock_data.passes.trips",
        "compared and known == [most] * len(counts)",
        "True",
        LISTS,
    ),
    Fault(
        "products: a product by another matrix is joined",
        "graphdock_fusion.passes.batch_matmuls",
        "node.requested, node.inputs[1], node.inputs[0].shape",
        "node.requested, node.inputs[0].shape",
    ),
    Fault(
        "products: a product of the next step is joined",
        "graphdock_fusion.passes.batch_matmuls",
        "at.append(found[node] + 1)",
        "pass",
    ),
    Fault(
        "products: rows are given back in another order",
        "graphdock_fusion.passes.batch_matmuls",
        "zip(alike, make.cut(whole, [rows] * len(alike), 0), strict=True)",
        "zip(alike, make.cut(whole, [rows] * len(alike), 0)[::-1], strict=True)",
    ),
    Fault(
        "cse: operands in another order are the same",
        "graphdock.passes.simplify",
        "*map(id, change.inputs(node))",
        "*sorted(map(id, change.inputs(node)))",
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
        "return found[0] if always else None",
        "return found[0]",
    ),
    Fault(
        "gradients: what arrives at a tensor by two ways is added once",
        "graphdock.gradients.flow",
        "for p in parts]\n            found = apply_op(",
        "for p in dict.fromkeys(parts)]\n            found = apply_op(",
    ),
    Fault(
        "custom ops: a function takes the buffers of the step",
        "graphdock_customop.python_kernel",
        'copy = np.array(buffer, order="C")',
        "copy = np.asarray(buffer).view()",
        OWNERSHIP,
    ),
    Fault(
        "py_func: a function takes the buffers of the step",
        "graphdock.planning.host_ops",
        "[a.copy() if a.ndim else a[()] for a in args]",
        "args",
        OWNERSHIP,
    ),
    Fault(
        "py_func: what a function returns is not copied",
        "graphdock.planning.host_ops",
        'array = np.array(array, order="C", copy=True)',
        "array = np.ascontiguousarray(array)",
        OWNERSHIP,
    ),
    Fault(
        "constants: one is over the caller's array",
        "graphdock.ops.convert",
        'array if own else np.array(array, order="C", copy=True)',
        "array if own else np.ascontiguousarray(array).view()",
        OWNERSHIP,
    ),
    Fault(
        "fetches: what no step owns is not copied",
        "graphdock_executor.lower.lowering",
        'result = Suffixed(where.at, ".copy()")',
        "result = where.at",
        OWNERSHIP,
    ),
    Fault(
        "fetches: two of one storage share it",
        "graphdock_executor.lower.lowering",
        "and where.roots[0] not in given",
        "",
        OWNERSHIP,
    ),
    Fault(
        "variables: a read of unknown shape is no copy",
        "graphdock.contracts.runtime.resources",
        "return copy",
        "return self.buffer",
        OWNERSHIP,
    ),
    Fault(
        "variables: a fetched one is read where it was read first",
        "graphdock.planning.translate",
        "early.extend(standing.pop(handle, ()))",
        "pass",
        OWNERSHIP,
    ),
    Fault(
        "partial runs: a feed is kept as it is",
        "graphdock.session.partial_run",
        "np.array(convert_feed(feed, value))",
        "convert_feed(feed, value)",
        OWNERSHIP,
    ),
    Fault(
        "partial runs: what was fetched is kept as it is",
        "graphdock_dataflow.pieces",
        "np.array(values[self._level.outputs[i]])[()]",
        "values[self._level.outputs[i]]",
        OWNERSHIP,
    ),
    Fault(
        "partial runs: an update runs again",
        "graphdock_dataflow.pieces",
        "row not in found and row not in self._done",
        "row not in found",
        OWNERSHIP,
    ),
    Fault(
        "debug: what a branch reads last is overwritten behind it",
        "graphdock_executor.lower.lowering",
        "after.setdefault(at, (block, len(block.statements)))",
        "after[at] = (block, len(block.statements))",
        CONDS,
    ),
    Fault(
        "liveness: what a body captures is not read in it",
        "graphdock_executor.liveness",
        "facts.same.update(dict.fromkeys(inside, facts.of(outer)))",
        "facts.same.update({})",
        CONDS,
    ),
    Fault(
        "reshape: nothing is left for -1 of no elements",
        "graphdock_cpu.kernels.views",
        "sizes[at] = shapes.left_over(x.shape, sizes[:at] + sizes[at + 1 :])",
        "sizes[at] = 0",
        EMPTIES,
    ),
    Fault(
        "graphs: inputs are not counted",
        "graphdock_tensorflow.graphs.convert",
        "if len(node.inputs) < INPUTS.get(node.op, 0):",
        "if False:",
        MESSAGES,
    ),
    Fault(
        "graphs: two nodes have one name",
        "graphdock_tensorflow.graphs.reading",
        "if item.name in level:",
        "if False:",
        MESSAGES,
    ),
    Fault(
        "graphs: a variable needs no dtype",
        "graphdock_tensorflow.graphs.references",
        'if "dtype" not in node.attrs:',
        "if False:",
        MESSAGES,
    ),
    Fault(
        "tables: a block is named several times",
        "graphdock_tensorflow.checkpoints.table",
        "if offset < end:",
        "if False:",
        LONG_CHECKPOINTS,
    ),
    Fault(
        "tables: keys are as long as they say",
        "graphdock_tensorflow.checkpoints.table",
        "left -= len(key)",
        "pass",
        LONG_CHECKPOINTS,
    ),
    Fault(
        "checkpoints: the tensors of an index share their bytes",
        "graphdock_storage.checkpoint.layout",
        "if file == other and start + nbytes > offset:",
        "if False:",
        LONG_CHECKPOINTS,
    ),
    Fault(
        "checkpoints: a slice reaches behind its tensor",
        "graphdock_storage.checkpoint.slices",
        " or int(start) + int(length) > size:",
        ":",
        CHECKPOINTS,
    ),
    Fault(
        "checkpoints: parts may overlap",
        "graphdock_storage.checkpoint.slices",
        "if cells.any():",
        "if False:",
        CHECKPOINTS,
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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_what_it_replaces_stands_there_once(fault):
    spec = importlib.util.find_spec(fault.module)
    assert Path(spec.origin).read_text(encoding="utf-8").count(fault.right) == 1


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
@pytest.mark.sampled(40)
def test_a_generator_finds_it(fault):
    run = planted(fault)
    assert run.returncode == 1 and "SystemError" not in run.stdout, run.stdout[-3000:] + run.stderr[-2000:]
