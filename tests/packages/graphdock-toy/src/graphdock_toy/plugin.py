"""Hooks of the toy plugin. Importing this module imports neither NumPy nor the device."""

from graphdock.contracts import OpLibrary, Pass, hookimpl


@hookimpl
def register_devices():
    from graphdock_toy.device import ToyFactory

    return [ToyFactory()]


@hookimpl
def register_ops():
    return [OpLibrary("graphdock_toy._gen.opdefs", specs="graphdock_toy")]


@hookimpl
def register_kernels():
    from graphdock_toy.kernels import KERNELS

    return KERNELS


@hookimpl
def register_region_compilers():
    from graphdock_toy.regions import Scales

    return [Scales()]


@hookimpl
def register_patterns():
    from graphdock_toy.patterns import PATTERNS

    return PATTERNS


@hookimpl
def register_executors():
    from graphdock_toy.executor import ToyExecutor

    return [ToyExecutor()]


@hookimpl
def register_session_factories():
    from graphdock_toy.executor import ToySessions

    return [ToySessions()]


@hookimpl
def register_resource_kinds():
    from graphdock_toy.counters import COUNTERS

    return [COUNTERS]


@hookimpl
def register_graph_formats():
    from graphdock_toy.formats import ToyGraphs

    return [ToyGraphs()]


@hookimpl
def register_checkpoint_formats():
    from graphdock_toy.formats import ToyCheckpoints

    return [ToyCheckpoints()]


@hookimpl
def register_passes():
    return [Pass("toy_scales", "simplify", 75, "drops scales by one", "graphdock_toy.passes:scales", _scales)]


@hookimpl
def register_transports():
    from graphdock_toy.executor import ToyNetwork

    return [ToyNetwork()]


@hookimpl
def register_placers():
    from graphdock_toy.placer import ToyPlacer

    return [ToyPlacer()]


def _scales(node):
    return node.op == "toy.Scale"
