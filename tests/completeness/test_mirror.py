"""Each module of a room has a test of its name: ``host/graphdock/nest.py`` has ``tests/host/test_nest.py``, and
``plugins/executor/graphdock_executor/storage.py`` has ``tests/executor/test_storage.py``.

A module at the top, such as ``shape.py``, has its test in ``tests/host``; an inner package, such as ``runtime/resources``, may
have one for all of its modules, ``tests/contracts/runtime/test_resources.py``. What cuts across modules stands in ``tests/laws``. A
module whose test has another name, or that has none yet, stands in :data:`ELSEWHERE` with the reason.
"""

from __future__ import annotations

import ast
from pathlib import Path

import graphdock
import pytest

ROOT = Path(__file__).parents[2]
HOST = Path(graphdock.__file__).parent
#: Rooms of plugins/ whose modules have tests of their names; those of std, tf1 and the backends are tested op by op.
ROOMS = (
    "commands",
    "customop",
    "data",
    "dataflow",
    "executor",
    "fusion",
    "native",
    "planner",
    "profiler",
    "storage",
    "tensorflow",
    "testing",
)

DATA = "tables of names only; tests/completeness looks every one up"
GRADIENTS = "tests/host/test_gradients.py, which is not split yet"
CONTROL_FLOW = "tests/host/test_control_flow.py, which is not split yet"
LOWERING = (
    "one step of lowering: tests/host/test_golden_source.py and tests/executor/step_program read what comes of it"
)
COMMAND = "a command: tests/commands runs all of them"
KIT = "tests/conformance runs the kit on right and on planted wrong kernels"
ANY_ORDER = "tests/laws/test_any_order.py: random programs of all that the executor runs, beside the straight-line one"
DATASETS = "tests/data/dataset/test_against_tensorflow.py: programs of datasets, with TensorFlow's answers"
ARRAYS = (
    "tests/data/arrays/test_tensor_array.py: programs of arrays, with TensorFlow's answers and differences of functions"
)
RECORDS = "records only; those who fill them are tested"

PLANTED = "tests/laws/test_planted_faults.py plants faults that it finds, and runs it where there is none"

#: Module -> where it is tested, or why it is not. An entry whose module has a test of its name by now is an error.
ELSEWHERE = {
    "contracts/loop_program.py": "tests/fusion/regions/test_loops.py: what loops become, printed and evaluated",
    "contracts/cluster.py": "tests/cluster/partition/test_assign.py: names of tasks; tests/testing/test_transport.py: a transport",
    "contracts/failures.py": "tests/contracts/test_wire.py, as errors travel",
    "contracts/waiting_threads.py": "tests/cluster/test_waiting_threads.py",
    "testing/scatter.py": "tests/differential/test_random_cuts.py, which it cuts",
    "testing/thread_cluster.py": "tests/cluster/test_life.py, whose servers it starts and kills",
    "tensorflow/rewrite.py": "tests/tensorflow/test_compat.py",
    "tensorflow/run/before_one.py": "tests/tensorflow/run/test_twins.py: programs that import them",
    "tensorflow/run/datasets/cifar10.py": "tests/tensorflow/run/test_data.py",
    "tensorflow/run/datasets/fashion_mnist.py": "tests/tensorflow/run/test_data.py",
    "tensorflow/run/datasets/files.py": "tests/tensorflow/run/test_data.py",
    "tensorflow/run/datasets/mnist.py": "tests/tensorflow/run/test_data.py",
    "tensorflow/run/datasets/npz.py": "tests/tensorflow/run/test_data.py",
    "tensorflow/run/device_lib.py": "tests/tensorflow/run/test_inside.py",
    "tensorflow/run/digits.py": "tests/tensorflow/run/test_data.py",
    "tensorflow/run/file_io.py": "tests/tensorflow/run/test_inside.py",
    "tensorflow/run/finder.py": "tests/tensorflow/run/test_command.py: programs that are run",
    "tensorflow/run/mnist.py": "tests/tensorflow/run/test_data.py",
    "tensorflow/run/mnist_network.py": "tests/tensorflow/run/test_inside.py",
    "tensorflow/run/old_scipy.py": "tests/tensorflow/run/test_twins.py: programs that import them",
    "tensorflow/run/shims.py": "tests/tensorflow/run/test_twins.py: programs that import them",
    "tensorflow/run/stand_ins.py": "tests/tensorflow/run/test_inside.py",
    "tensorflow/run/steps.py": "tests/tensorflow/run/test_command.py: programs that are run",
    "tensorflow/run/timeline.py": "tests/tensorflow/run/test_inside.py",
    "tensorflow/run/uses.py": "tests/tensorflow/run/test_command.py: programs that are run",
    "data/arrays/gradients.py": ARRAYS,
    "data/arrays/shape_fns.py": ARRAYS,
    "data/kernels/tensor_lists.py": ARRAYS,
    "data/dataset/dataset.py": DATASETS,
    "data/dataset/elements.py": DATASETS,
    "data/dataset/functions.py": DATASETS,
    "data/dataset/readers.py": DATASETS,
    "data/dataset/shape_fns.py": DATASETS,
    "data/dataset/cardinalities.py": DATASETS,
    "data/dataset/example_files.py": DATASETS,
    "data/dataset/stages/cache.py": "tests/data/dataset/test_cache.py",
    "data/dataset/stages/choosing.py": DATASETS,
    "data/dataset/stages/grouping.py": "tests/data/dataset/test_grouping.py",
    "data/dataset/stages/windows.py": "tests/data/dataset/test_windows.py",
    "data/dataset/stages/sparse.py": DATASETS,
    "data/dataset/stages/sql.py": "tests/data/dataset/test_transformations.py",
    "data/records/sequences.py": "tests/data/records/test_parsing.py",
    "data/dataset/stages/batching.py": DATASETS,
    "data/dataset/stages/files.py": DATASETS,
    "data/dataset/stages/functional.py": DATASETS,
    "data/dataset/stages/order.py": DATASETS,
    "data/dataset/stages/parallel.py": DATASETS,
    "data/dataset/stages/sources.py": DATASETS,
    "data/dataset/stages/stage.py": DATASETS,
    "data/dataset/stages/prefetch.py": "tests/data/dataset/test_prefetch.py",
    "data/kernels/iterators.py": "tests/data/dataset/test_iterator.py",
    "data/resources/iterator.py": "tests/data/dataset/test_iterator.py",
    "contracts/deadlines.py": "tests/contracts/test_step.py: deadlines, beside the tokens that they cancel",
    "executor/step_program/native_runs.py": "tests/executor/straight_line/test_native_runs.py: where runs end, and what they call",
    "executor/unordered_waits.py": "tests/laws/test_steps_that_wait.py: which waits have an order, in bodies too",
    "testing/adversary/load.py": "tests/testing/adversary/test_events.py",
    "testing/facts/compiler_graphs.py": "tests/testing/facts/test_compiler_case.py",
    "testing/facts/edge_case.py": KIT,
    "testing/facts/pattern_sample.py": "tests/testing/facts/test_pattern_case.py",
    "testing/facts/plan_facts.py": PLANTED,
    "testing/facts/settings.py": PLANTED,
    "testing/law_graphs.py": "tests/testing/test_laws.py",
    "testing/gaps.py": "tests/conformance/test_compliance_table.py",
    "contracts/runtime/shape_checks.py": "tests/executor/lower/test_guards.py",
    "dataflow/bodies.py": ANY_ORDER,
    "dataflow/calls.py": ANY_ORDER,
    "dataflow/checks.py": ANY_ORDER,
    "dataflow/instance.py": ANY_ORDER,
    "dataflow/kernels.py": "tests/dataflow/test_loops.py and test_scheduler.py: kernels here, on other threads, and that wait",
    "dataflow/frames.py": "tests/dataflow/test_primitives.py",
    "dataflow/nodes.py": ANY_ORDER,
    "dataflow/tagged.py": "tests/dataflow/test_primitives.py",
    "tensorflow/run/control_flow_ops.py": "tests/dataflow/test_primitives.py builds with it all that it tests",
    "dataflow/plugin.py": "tests/plugin/test_host.py loads every plugin",
    "planner/plugin.py": "tests/placement/test_problem.py names what it brings",
    "dataflow/program.py": "tests/dataflow/test_executor.py",
    "dataflow/traces.py": "tests/dataflow/test_executor.py reads orders from traces",
    "dataflow/transfers.py": "tests/laws/test_any_order.py: updates and moves over devices with memory of their own",
    "tensorflow/saved_model/builder.py": "tests/tensorflow/saved_model/test_saved_model.py",
    "tensorflow/saved_model/constants.py": "tests/tensorflow/saved_model/test_saved_model.py",
    "tensorflow/saved_model/loader.py": "tests/tensorflow/saved_model/test_saved_model.py",
    "tensorflow/saved_model/signatures.py": "tests/tensorflow/saved_model/test_saved_model.py",
    "tensorflow/endpoints.py": DATA,
    "names.py": DATA,
    "ops/names.py": DATA,
    "cli/command_tools.py": "tests/cli/test_plugin_commands.py and plugins/triton/tests/test_cli.py",
    "cli/config.py": COMMAND,
    "cli/error.py": "tests/docs/test_error_pages.py",
    "commands/checks.py": "tests/plugin/test_lint.py",
    "commands/devices.py": COMMAND,
    "commands/explain.py": "tests/cli/test_target.py",
    "commands/kernels.py": COMMAND,
    "commands/probe.py": "tests/commands/test_isolated.py runs it as a child",
    "contracts/runtime/access.py": "tests/planning/test_locks.py",
    "contracts/command.py": "tests/cli/test_plugin_commands.py",
    "contracts/device.py": "tests/conformance and tests/devices: the contract over four devices",
    "contracts/placed.py": "tests/cli/test_target.py and tests/session/test_session.py",
    "contracts/formats.py": "tests/plugin/test_formats.py",
    "contracts/in_flight.py": "tests/executor/test_in_flight.py",
    "contracts/native.py": "tests/executor/straight_line/test_native_runs.py: runs of calls, by a chain of its own",
    "contracts/passes.py": "tests/planning/test_plan_passes.py: what stands there of phases, passes and contexts",
    "contracts/region.py": "tests/contracts/test_region_compiler.py",
    "contracts/region_print.py": "tests/fusion/regions/test_lowering.py reads what it prints",
    "contracts/region_program.py": RECORDS,
    "contracts/scalar_formula.py": "tests/conformance/test_host_scalars.py: each formula against the op's kernel",
    "control_flow/cond.py": CONTROL_FLOW,
    "control_flow/trace.py": CONTROL_FLOW,
    "control_flow/while_loop.py": CONTROL_FLOW,
    "gradients/control_flow.py": GRADIENTS,
    "gradients/core.py": GRADIENTS,
    "gradients/gradient_body.py": GRADIENTS,
    "graph/binding.py": "tests/ops/test_apply.py and tests/graph/test_graph.py",
    "graph/body.py": CONTROL_FLOW,
    "ops/core_reference.py": KIT,
    "ops/core_shapes.py": CONTROL_FLOW,
    "placement/placer.py": "tests/placement/test_choose.py and tests/integration/test_two_backends.py",
    "plugin/hookspecs.py": "tests/plugin/test_hooks.py",
    "plugin/loader.py": "tests/plugin/test_host.py and test_discovery.py",
    "plugin/state.py": "tests/plugin/test_ledger.py and test_host.py",
    "plugin/kernel_rows.py": "tests/plugin/test_manifest.py and test_kernel_registry.py",
    "plugin/consistency.py": "tests/plugin/test_lint.py",
    "graph/notebook.py": "tests/notebooks/test_notebooks.py",
    "profiler/simulation.py": "tests/planner/test_simulated.py and tests/placement/test_problem.py read its lines",
    "profiler/pictures.py": "tests/notebooks/test_notebooks.py",
    "ops/replacing.py": "tests/notebooks/test_notebooks.py",
    "plugin/settings.py": "tests/config/test_config_file.py",
    "fusion/regions/placing.py": "a part of lowering: tests/fusion/regions/test_lowering.py and test_spaces.py",
    "fusion/regions/typed.py": "a part of lowering: tests/fusion/regions/test_forms.py, every dtype of every sample",
    "executor/plugin.py": "tests/plugin/test_executors.py",
    "executor/transfers.py": "tests/executor/lower/test_remote_variables.py and tests/devices",
    "planning/plan_builder.py": RECORDS,
    "planning/host_ops.py": "tests/host/test_step_semantics.py",
    "executor/liveness.py": "tests/laws/test_storage_rules.py",
    "executor/lower/bodies.py": LOWERING,
    "executor/lower/check_numerics.py": "tests/laws/test_check_numerics.py",
    "executor/lower/host.py": LOWERING,
    "executor/lower/move.py": LOWERING,
    "executor/lower/records.py": RECORDS,
    "executor/lower/state.py": LOWERING,
    "executor/lower/variables.py": LOWERING,
    "planning/plan.py": "tests/host/test_step_semantics.py",
    "planning/planner.py": "tests/host/test_step_semantics.py",
    "planning/prepare.py": "tests/contracts/test_kernel.py: when kernels are prepared, and what they may refuse",
    "executor/step_program/names.py": "tests/executor/step_program/test_printer.py",
    "executor/step_program/statements.py": RECORDS,
    "planning/scalars.py": "tests/conformance/test_host_scalars.py",
    "planning/spaces.py": "tests/devices/test_variables_and_moves.py",
    "planning/stages.py": "tests/contracts/test_executor.py",
    "planning/translate.py": "tests/host/test_step_semantics.py",
    "session/partial_run.py": "tests/differences/test_sessions.py",
    "data/endpoints.py": DATA,
    "data/reference.py": "tests/conformance/test_cpu.py holds kernels against it",
    "data/plugin.py": "tests/plugin/test_host.py loads every plugin",
    "data/kernels/files.py": "tests/data/records/test_files.py",
    "data/kernels/examples.py": "tests/data/records/test_parsing.py",
    "data/kernels/feature_bytes.py": "tests/data/records/test_feature_bytes.py",
    "data/kernels/features.py": "tests/data/records/test_parsing.py",
    "data/kernels/serialized.py": "tests/data/records/test_serialized.py",
    "data/kernels/accumulators.py": "tests/data/queues/test_accumulators.py",
    "data/kernels/barriers.py": "tests/data/queues/test_barrier.py",
    "data/resources/dropped.py": "tests/tf1/train/test_sync_replicas.py",
    "data/resources/barrier.py": "tests/data/queues/test_barrier.py",
    "data/kernels/staging_maps.py": "tests/data/queues/test_map_staging.py",
    "data/resources/staging_map.py": "tests/data/queues/test_map_staging.py",
    "data/kernels/queues.py": "tests/data/queues/test_queues.py and test_staging.py",
    "data/kernels/readers.py": "tests/data/input/test_readers.py",
    "data/queues/shape_fns.py": "tests/data/queues/test_queues.py",
    "data/resources/files.py": "tests/data/records/test_files.py and tests/data/resources/test_reader.py",
    "data/kernels/tables.py": "tests/data/lookup/test_tables.py",
    "data/lookup/initializers.py": "tests/data/lookup/test_vocabularies.py",
    "data/lookup/shape_fns.py": "tests/data/lookup/test_tables.py",
    "data/resources/table.py": "tests/data/lookup/test_tables.py and test_vocabularies.py",
    "data/records/features.py": RECORDS,
    "data/records/shape_fns.py": "tests/data/records/test_parsing.py",
    "storage/kernels/checkpoint.py": "tests/tf1/train/test_saver.py and tests/devices/test_checkpoints.py",
    "storage/kernels/summaries.py": "tests/tf1/summary/test_ops.py",
    "storage/plugin.py": "tests/placement/test_host_ops.py",
    "tensorflow/checkpoints/formats.py": "tests/tensorflow/checkpoints/test_bundle.py and test_old_tensorflow.py",
    "tensorflow/graphs/format.py": "tests/tensorflow/graphs/test_reading.py and test_writing.py",
    "tensorflow/plugin.py": "tests/plugin/test_formats.py and test_left_out.py",
    "tensorflow/plain_data/order.py": "tests/tensorflow/plain_data/test_reading.py",
    "tensorflow/plain_data/writing.py": "tests/tensorflow/plain_data/test_reading.py",
    "tensorflow/plain_data/format.py": "tests/tensorflow/plain_data/test_reading.py",
    "tensorflow/import_graph.py": "tests/tensorflow/graphs/test_files.py",
    "tensorflow/graphs/bodies.py": "tests/tensorflow/graphs/test_loops.py and test_branches.py: bodies taken out of a graph",
    "tensorflow/graphs/nodes.py": "tests/tensorflow/graphs/test_convert.py: every stage works on these nodes",
    "tensorflow/graphs/sums.py": "tests/tensorflow/graphs/test_convert.py",
    "tensorflow/graphs/table.py": "tests/tensorflow/graphs/test_convert.py",
    "tensor_shape.py": "tests/differences/test_shapes.py",
    "testing/bench.py": KIT,
    "testing/case.py": KIT,
    "testing/conformance.py": KIT,
    "testing/driver/detector.py": "tests/testing/driver/test_races.py",
    "testing/driver/roles.py": "tests/testing/driver/test_races.py",
    "testing/driver/work.py": "tests/testing/driver/test_queue.py",
    "testing/doubles.py": "tests/devices/test_fake.py, tests/devices/test_null.py and tests/testing/test_queued.py",
    "testing/fake.py": "tests/devices/test_fake.py",
    "testing/gradient_case.py": KIT,
    "testing/null.py": "tests/devices/test_null.py",
    "testing/programs.py": KIT,
    "testing/pytest_plugin.py": "tests/conformance/test_pytest_plugin.py",
    "testing/value_check.py": KIT,
    "variables/initial_value.py": "tests/host/test_variables.py",
    "variables/variable.py": "tests/host/test_variables.py",
    "variables/of_operations.py": "tests/tf1/variables/test_variable_def.py",
    "testing/random_regions.py": "tests/contracts/test_region_check.py, and what plugins/triton is held to",
    "testing/region_reference.py": "tests/fusion/regions/test_forms.py holds it to the specs' references",
}


def _has_code(path: Path) -> bool:
    """Whether a module says more than its docstring and imports."""
    told = (ast.Import, ast.ImportFrom, ast.Expr)
    return any(not isinstance(node, told) for node in ast.parse(path.read_text()).body)


def _modules() -> list[str]:
    folders = {HOST: "", **{ROOT / "plugins" / room / f"graphdock_{room}": f"{room}/" for room in ROOMS}}
    found = []
    for folder, room in folders.items():
        for path in folder.rglob("*.py"):
            if "_gen" not in path.parts and path.stem not in ("__init__", "__main__") and _has_code(path):
                found.append(room + path.relative_to(folder).as_posix())
    return sorted(found)


def _test_of(module: str) -> Path:
    folder, _, file = module.rpartition("/")
    own = ROOT / "tests" / (folder or "host") / f"test_{file}"
    outer, _, package = folder.rpartition("/")
    shared = ROOT / "tests" / outer / f"test_{package}.py"
    return shared if outer and shared.is_file() and not own.is_file() else own


@pytest.mark.parametrize("module", _modules())
def test_a_module_has_a_test_of_its_name_or_a_reason(module: str) -> None:
    has = _test_of(module).is_file()
    assert has or module in ELSEWHERE, (
        f"write {_test_of(module).relative_to(ROOT)}, or say in ELSEWHERE where it is tested"
    )
    assert not (has and module in ELSEWHERE), f"{module} has a test of its name: take it out of ELSEWHERE"


def test_no_reason_is_left_of_a_module_that_is_gone() -> None:
    assert set(ELSEWHERE) <= set(_modules())


def test_reasons_name_tests_that_are_there() -> None:
    for module, reason in ELSEWHERE.items():
        for word in reason.replace(",", " ").replace(":", " ").replace(";", " ").split():
            if word.startswith("tests/"):
                assert (ROOT / word).exists(), (module, word)
