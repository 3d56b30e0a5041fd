"""Checks of whether what a loaded plugin registered is what its manifest says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphdock.errors import ManifestError
from graphdock.plugin import manifest
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.kernel_registry import differences, row_of
from graphdock.plugin.state import PluginState, first_of

if TYPE_CHECKING:
    from graphdock.plugin.host import Host


def check_drift(host: Host, state: PluginState) -> None:
    """Compare the manifest with what the code registered; the code holds, a difference is recorded. Imports nothing."""
    if not state.loaded or state.manifest is None:
        return
    try:
        found = list(_differences(host, state, state.manifest))
    except ManifestError as error:
        state.fault("bad manifest", error.text, error)
        return
    if found:
        hint = f"run `graphdock opgen manifest` in {state.found.distribution}"
        state.stop("manifest drift", first_of(found), hint, whole="; ".join(found))


def _differences(host: Host, state: PluginState, stated: manifest.Manifest) -> Iterable[str]:
    declared, real = {d.type for d in stated.devices}, set(state.added.devices)
    for name in sorted(declared ^ real):
        yield f"device {name} is only in the {'manifest' if name in declared else 'code'}"
    if stated.hooks is not None and state.hooks is not None:
        implemented = {name for name in HOOKS if getattr(state.hooks.hook, name).get_hookimpls()}
        for name in sorted(implemented ^ set(stated.hooks)):
            yield f"hook {name} is only in the {'code' if name in implemented else 'manifest'}"
    if stated.generated is None:
        return
    for hook in HOOKS.values():
        if hook.noun is not None:
            brought = set(getattr(host, hook.registry).names_of(state.name))
            for name in sorted(brought ^ set(stated.provided.get(hook.registry, ()))):
                yield f"{hook.noun} {name} is only in the {'code' if name in brought else 'manifest'}"
    lazy = {module.name for module in host.kernels.modules(state.name)}
    rows = [row for row in stated.kernels if row.module not in lazy] if stated.kernels.modules() - lazy else []
    yield from differences(rows, [row_of(k, None) for k in host.kernels.returned(state.name)])
    ops = set(host.ops.declared_by(state.found.package))
    for name in sorted(ops ^ set(stated.op_names)):
        yield f"op {name} is only in the {'code' if name in ops else 'manifest'}"
    operators = set(host.ops.operators_of(state.found.package))
    for name in sorted(operators ^ set(stated.operators)) if stated.operators else ():  # older ones do not say them
        yield f"operator {name} is only in the {'code' if name in operators else 'manifest'}"
