"""Names that two installed plugins state in their manifests: op types, device types, and what is asked for by a name alone.

A name of graphdock's own plugins is theirs. Of others' neither plugin loads: which one a program got would depend on which was
loaded first. Names that begin with the plugin's own (kernels, patterns, region compilers) can't clash; two endpoints are an error
when one is looked up (:mod:`graphdock.plugin.endpoints`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.state import PluginState, first_of

#: Attribute of the host that holds what a hook registers -> what one of these is, of those that a manifest lists by name.
_NOUNS = {hook.registry: hook.noun for hook in HOOKS.values() if hook.noun is not None}


def stop_clashes(states: Sequence[PluginState]) -> None:
    """Stop the plugins whose manifests state what another one's states, unless that one is stopped already.

    Args:
      states: with their manifests read. Those that are not graphdock's own are compared with all.
    """
    usable = [s for s in states if s.usable and s.manifest is not None]
    if all(s.found.is_own for s in usable):
        return
    owners: dict[tuple[str, str], list[PluginState]] = {}
    for state in usable:
        for stated in dict.fromkeys(_names(state)):
            owners.setdefault(stated, []).append(state)
    clashes: dict[int, list[tuple[str, str, list[PluginState]]]] = {}
    for (kind, name), found in owners.items():
        for state in found if len(found) > 1 else ():
            if not state.found.is_own:
                others = [other for other in found if other is not state]
                clashes.setdefault(id(state), []).append((kind, name, others))
    for state in usable:
        rivals = clashes.get(id(state), [])
        if rivals:
            releases = dict.fromkeys(other.found.release for _, _, found in rivals for other in found)
            own = any(other.found.is_own for _, _, found in rivals for other in found)
            outcome = "graphdock's own wins" if own else "neither loads"
            what = first_of([f"{kind} {name!r}" for kind, name, _ in rivals])
            state.stop(
                "duplicate",
                f"{' and '.join(releases)} brings the {what} too; {outcome}",
                f'under [plugins]: block = ["{state.found.distribution}"]',
            )


def _names(state: PluginState) -> Iterator[tuple[str, str]]:
    assert state.manifest is not None
    for device in state.manifest.devices:
        for name in (device.type, *device.aliases):
            yield "device type", name
    for op in state.op_names:
        yield "op", op
    for kind, names in state.provided.items():
        for name in names:
            yield _NOUNS[kind], name
