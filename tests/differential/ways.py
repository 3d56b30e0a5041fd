"""Ways in which a graph gives the same: other configurations of a session, and other backends."""

from __future__ import annotations

import contextlib
import types

from graphdock.contracts import hookimpl
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.region_reference import ReferenceCompiler

__all__ = ["WAYS", "elsewhere"]

OFF = dict.fromkeys(simplifications(), False)
#: Name -> fields of the configuration.
WAYS = {
    "debug": {"debug": True},
    "no passes": {"passes": OFF},
    "debug, no passes": {"debug": True, "passes": OFF},
    "generic": {"shape_policy": "generic"},
    "generic, debug": {"shape_policy": "generic", "debug": True},
    "no fusion": {"fusion": False},
    **{f"without {name}": {"passes": {name: False}} for name in simplifications()},
    **{f"{name} alone": {"passes": {**OFF, name: True}} for name in simplifications()},
}


@contextlib.contextmanager
def elsewhere(seed):
    """Name -> (host, configuration) of what computes otherwise than the cpu plugin alone."""
    late, other = Host(), Host()
    queued.install(late, seed=seed)
    hook = hookimpl(specname="register_region_compilers")(lambda: [ReferenceCompiler()])
    other.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
    on_queues = {"backends": ("queued", "cpu"), "fallback": "allow"}
    try:
        yield {
            "queued": (late, on_queues),
            "queued, debug": (late, {**on_queues, "debug": True}),
            "queued, generic": (late, {**on_queues, "shape_policy": "generic"}),
            "queued, no passes": (late, {**on_queues, "passes": OFF}),
            "queued, in flight": (late, {**on_queues, "steps_in_flight": 3}),
            "regions": (other, {"backends": ("lab", "cpu")}),
        }
    finally:
        late.close()
        other.close()
