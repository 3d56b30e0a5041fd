"""The command line, ``graphdock``. Each command is a module of its own, imported when it is called.

A plugin whose manifest has ``[command]`` has a command of its own name, or several ``[[command]]`` with names, for whoever may load
the plugin. A command of graphdock's own goes before one of a plugin of that name; one that two other plugins bring is neither's.

Exit status: 0 all is well, 1 something was found (a fault, no kernel), 2 the call was wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from graphdock.errors import ConfigError, GraphdockError, NotFoundError, PluginError, did_you_mean

if TYPE_CHECKING:
    from graphdock.plugin.manifest import CommandDecl
    from graphdock.plugin.state import PluginState

__all__ = ["COMMANDS", "LazyGroup", "cli", "main"]

#: Command -> module that exposes ``command``, and its line in ``graphdock --help``.
COMMANDS: dict[str, tuple[str, str]] = {
    "plugins": ("graphdock.cli.plugins", "List installed plugins; imports none of them."),
    "doctor": ("graphdock.cli.doctor", "Load and probe every plugin, and say what is wrong."),
    "devices": ("graphdock.cli.devices", "List the devices that plugins find."),
    "kernels": ("graphdock.cli.kernels", "List the kernels of an op."),
    "explain": ("graphdock.cli.explain", "Say where each node of a program runs, and why."),
    "error": ("graphdock.cli.error", "Say what causes an error, and what cures it."),
    "config": ("graphdock.cli.config", "Print every setting and where it comes from."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called; ``table`` is as :data:`COMMANDS`.

    ``more`` finds those of plugins; it is asked where the table has no such command, and for help.
    """

    def __init__(
        self,
        *args: Any,
        table: dict[str, tuple[str, str]] | None = None,
        more: Callable[[], list[PluginCommand]] = list,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table or {}
        self.more = more

    def _of_plugins(self) -> dict[str, list[PluginCommand]]:
        """Command -> the plugins that bring it: graphdock's own alone, or all others."""
        found: dict[str, list[PluginCommand]] = {}
        for command in self.more():
            rivals = found.setdefault(command.name, [])
            if not (rivals and rivals[0].state.found.is_own):
                rivals.append(command)
        return {name: rivals for name, rivals in found.items() if name not in self.table}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.table, *(name for name, rivals in self._of_plugins().items() if rivals[0].declared)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            rivals = self._of_plugins().get(cmd_name)
            if rivals is None:
                return None
            from graphdock.cli.command_tools import Tools

            ctx.obj = Tools()
            return _command_of(rivals)
        module = self.table[cmd_name][0]
        try:
            command: click.Command = importlib.import_module(module).command
        except ModuleNotFoundError as error:
            if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
                raise
            raise click.ClickException(
                f"this installation has no command {cmd_name!r} ({module} is missing)"
            ) from error
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.table and not name.startswith("-") and name not in self._of_plugins():
            from graphdock.plugin.host import configured_host
            from graphdock.plugin.left_out import who_brings

            hint = who_brings("commands", name, configured_host().plugins()) or did_you_mean(
                name, self.list_commands(ctx)
            )
            raise click.UsageError(f"no command {name!r}" + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [(name, text) for name, (_, text) in self.table.items()]
        others: list[tuple[str, str]] = []
        try:
            for name, rivals in self._of_plugins().items():
                if rivals[0].declared:
                    (own if rivals[0].state.found.is_own else others).append((name, _summary(rivals)))
        except GraphdockError as error:  # such as a wrong configuration: help is what cures it
            others = [("", f"not known: {error.text}")]
        for title, rows in (("Commands", own), ("Commands of plugins", others)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of graphdock's becomes one message and an exit status."""
        try:
            return super().invoke(ctx)
        except GraphdockError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2 if isinstance(error, (ConfigError, NotFoundError)) else 1)


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A command that a plugin has; ``declared`` is None where nobody knows, such as of one that is blocked."""

    name: str
    state: PluginState
    declared: CommandDecl | None


def _plugin_commands() -> list[PluginCommand]:
    """The commands of installed plugins, and plugins of which nobody knows, such as the blocked; imports none of them."""
    from graphdock.plugin.host import configured_host

    found = []
    for state in configured_host().plugins():
        if state.manifest is not None:
            found += [PluginCommand(declared.name, state, declared) for declared in state.manifest.commands]
        elif not state.usable:
            found.append(PluginCommand(state.name, state, None))
    return found


def _summary(rivals: list[PluginCommand]) -> str:
    able = [r for r in rivals if r.state.usable]
    if len(able) > 1:
        return "(several plugins bring it: " + ", ".join(r.state.name for r in able) + ")"
    first = (able or rivals)[0]
    assert first.declared is not None
    return first.declared.summary if able else f"(can't be used: {first.state.stage}: {first.state.cause})"


def _command_of(rivals: list[PluginCommand]) -> click.Command:
    """Import a plugin's command.

    Raises:
      PluginError: the plugin is stopped, what its manifest names is no command, or another plugin brings one of that name.
    """
    able = [r for r in rivals if r.state.usable]
    if len(able) > 1:
        each = [f"{r.state.name!r} ({r.state.found.distribution} {r.state.found.version})" for r in able]
        raise PluginError(
            f"several plugins bring a command {able[0].name!r}: {', '.join(each)}",
            hint=f'`block = ["{able[1].state.name}"]` under [plugins] leaves the first',
        )
    state, declared = (able or rivals)[0].state, (able or rivals)[0].declared
    whose = f"plugin {state.name!r} ({state.found.distribution} {state.found.version})"
    if not state.usable or declared is None:
        raise PluginError(f"{whose} can't be used: {state.stage}: {state.cause}", hint=state.hint)
    try:
        found = importlib.import_module(declared.module).command
    except GraphdockError:
        raise
    except Exception as error:  # whatever the plugin's module raises
        raise PluginError(f"{whose}: its command can't be imported: {type(error).__name__}: {error}") from error
    if not isinstance(found, click.Command):
        raise PluginError(
            f"{whose}: {declared.module}.command is no command", expected="a click.Command", got=repr(found)
        )
    return found


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        from graphdock.contracts import API_VERSION

        click.echo(f"graphdock {version('graphdock')} (contracts {API_VERSION[0]}.{API_VERSION[1]})")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    more=_plugin_commands,
    help="A dataflow runtime whose ops, kernels, devices and executors are plugins.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def cli() -> None:
    pass


def main() -> None:
    """Entry point of the console script."""
    cli(prog_name="graphdock")
