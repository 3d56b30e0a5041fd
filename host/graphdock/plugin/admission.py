"""Admission of installed plugins: allow and block lists, opt-in plugins, and what two of them state.

Of two plugins of one name, and of two whose manifests state one op type, device type, or name that something is asked for by alone,
graphdock's own loads; of others' neither does: which one a program got would depend on which was loaded first. Names that begin
with the plugin's own (kernels, patterns, region compilers) can't clash; two endpoints are an error when one is looked up
(:mod:`graphdock.plugin.endpoints`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import ConfigError, did_you_mean
from graphdock.plugin.discovery import Found, duplicates, normalized
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.state import PluginState, first_of

#: Why an opt-in plugin does not load, and what to do.
_SHIPPED_BLOCKED = "{distribution} ships it blocked"
_ALLOW = 'to allow it: allow = ["{name}"] under [plugins], or GRAPHDOCK_PLUGINS={name}'


@lazy_dataclass(frozen=True)
class Admission:
    """Choices of a host's user among plugins; the arguments of :class:`graphdock.plugin.host.Host`.

    Attributes:
      allow: names of plugins or distributions that may load besides graphdock's own; None allows all.
      block: names of plugins or distributions that never load.
      autoload: whether a plugin that nobody named may load.
      origins: name in ``allow`` or ``block`` -> where it was written, for messages.
    """

    allow: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    autoload: bool = True
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def limits(self) -> bool:
        """Return whether it names any plugin."""
        return self.allow is not None or bool(self.block)

    def allows(self, found: Found) -> bool:
        """Return whether the allow list names the plugin or its distribution."""
        return _first(self.allow or (), found) is not None

    def may_autoload(self, state: PluginState) -> bool:
        """Return whether a plugin that nobody named may load now, for its ops and what else it brings."""
        return not state.busy and self.may_publish(state)

    def may_publish(self, state: PluginState) -> bool:
        """Return whether a plugin that nobody named may be asked for names below ``tf``."""
        return state.usable and (self.autoload or state.found.is_own or self.allows(state.found))

    def states(self, found: Sequence[Found]) -> list[PluginState]:
        """A state for each installed plugin, stopped where it may not load.

        Raises:
          ConfigError: a name in ``allow`` or ``block`` that no installed plugin or distribution has.
        """
        offered = {f.plugin for f in found if f.opt_in}
        plain = [f for f in found if not f.opt_in]
        self._check_names({f.plugin for f in plain} | {f.distribution for f in plain}, offered)
        limited = self.allow is not None and (not self.allow or not offered.issuperset(self.allow))
        states = [PluginState(f) for f in found]
        for state in states:
            blocked = _first(self.block, state.found)
            if blocked is not None:
                why = self.origins.get(blocked, f"block names {blocked!r}")
                state.stop("blocked", why, "take it out of that list")
            elif state.found.opt_in:
                if state.name not in (self.allow or ()):
                    why = _SHIPPED_BLOCKED.format(distribution=state.found.distribution)
                    state.stop("blocked", why, _ALLOW.format(name=state.name))
            elif limited and not state.found.is_own and not self.allows(state.found):
                where = self.origins.get("allow", "allow")
                state.stop("blocked", f"{where} does not name it", "add it to that list")
        _stop_duplicates(states)
        return states

    def _check_names(self, known: set[str], offered: set[str]) -> None:
        for label, names in (("allow", self.allow or ()), ("block", self.block)):
            for name in names:
                if name not in known and normalized(name) not in known and name not in offered:
                    message = f"{self.origins.get(name, label)}: no plugin or distribution named {name!r} is installed"
                    raise ConfigError.unknown(
                        message, name, sorted(known), did_you_mean(name, [*sorted(known), *offered])
                    )


def _first(names: Iterable[str], found: Found) -> str | None:
    """The first of ``names`` that is the plugin's, or its distribution's as package indexes compare them."""
    mine = {found.plugin, found.distribution}
    return next((name for name in names if name in mine or normalized(name) in mine), None)


def _stop_duplicates(states: list[PluginState]) -> None:
    clash = duplicates(s.found for s in states if s.stage != "blocked")
    for state in states:
        rivals = clash.get(state.found)
        if rivals:
            names = " and ".join(o.release for o in rivals)
            outcome = "graphdock's own wins" if any(o.is_own for o in rivals) else "neither loads"
            state.stop(
                "duplicate",
                f"{names} brings a plugin named {state.name!r} too; {outcome}",
                _block(state, rivals),
            )


def _block(state: PluginState, rivals: Sequence[Found]) -> str:
    """Return how a plugin is to be had: without its rivals. Where one of these is graphdock's own, it is the one that goes."""
    others = dict.fromkeys(o.distribution for o in rivals)
    if any(o.is_own for o in rivals) or state.found.distribution in others:
        others = {state.found.distribution: None}
    named = ", ".join([f'"{name}"' for name in others])
    return f"under [plugins]: block = [{named}]"


#: Attribute of the host that holds what a hook registers -> what one of these is, of those that a manifest lists by name.
_NOUNS = {hook.registry: hook.noun for hook in HOOKS.values() if hook.noun is not None}


def stop_clashes(states: Sequence[PluginState]) -> None:
    """Stop the plugins whose manifests state what another one's states, unless that one is stopped already.

    Args:
      states: with their manifests read. Those that are not graphdock's own are compared with all.
    """
    usable = [s for s in states if s.usable and s.manifest is not None]
    theirs = {name for s in usable if not s.found.is_own for _, name in _names(s)}
    if not theirs:
        return
    # of graphdock's own, few have any of these names: the others' lists need not be read
    compared = [
        s for s in usable if not s.found.is_own or s.manifest is None or not s.manifest.quoted.isdisjoint(theirs)
    ]
    owners: dict[tuple[str, str], list[PluginState]] = {}
    for state in compared:
        for stated in dict.fromkeys(_names(state)):
            owners.setdefault(stated, []).append(state)
    clashes: dict[int, list[tuple[str, str, list[PluginState]]]] = {}
    for (kind, name), found in owners.items():
        for state in found if len(found) > 1 else ():
            if not state.found.is_own:
                others = [other for other in found if other is not state]
                clashes.setdefault(id(state), []).append((kind, name, others))
    for state in compared:
        rivals = clashes.get(id(state), [])
        if rivals:
            releases = dict.fromkeys(other.found.release for _, _, found in rivals for other in found)
            own = any(other.found.is_own for _, _, found in rivals for other in found)
            outcome = "graphdock's own wins" if own else "neither loads"
            twice = [f"{kind} {name!r}" for kind, name, _ in rivals]
            cause, whole = (
                f"{' and '.join(releases)} brings the {what} too; {outcome}"
                for what in (first_of(twice), "; ".join(twice))
            )
            hint = _block(state, [other.found for _, _, found in rivals for other in found])
            state.stop("duplicate", cause, hint, whole=whole)


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
