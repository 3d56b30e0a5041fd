"""The command line, ``graphdock``. Each command is a module of its own, imported when it is called.

A plugin whose manifest has ``[command]`` has a command of its own name, or several ``[[command]]`` with names, for whoever may load
the plugin. A command of graphdock's own goes before one of a plugin of that name; one that two other plugins bring is neither's.

Exit status: 0 all is well, 1 something was found (a fault, no kernel), 2 the call was wrong.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

from graphdock.errors import ConfigError, GraphdockError, NotFoundError, PluginError, did_you_mean

if TYPE_CHECKING:
    from graphdock.plugin.host import Host
    from graphdock.plugin.manifest import CommandDecl
    from graphdock.plugin.state import PluginState

#: Command, which is a module of this package that exposes ``command``, and its line in ``graphdock --help``: those that a wrong
#: configuration does not stop. All others are plugins'.
COMMANDS: dict[str, str] = {
    "error": "Say what causes an error, and what cures it.",
    "config": "Print every setting and where it comes from.",
}


def _of_plugins(host: Host) -> dict[str, list[tuple[PluginState, CommandDecl | None]]]:
    """Command -> the plugins that bring it, graphdock's own alone or all others, and what they declare; imports none of them.

    None is declared where nobody knows, such as by one that is blocked: that may have a command of its own name.
    """
    found: dict[str, list[tuple[PluginState, CommandDecl | None]]] = {}
    for state in host.plugins():
        unknown = state.manifest is None and not state.usable
        for declared in [None] if unknown else state.manifest.commands if state.manifest else ():
            name = state.name if declared is None else declared.name
            rivals = found.setdefault(name, [])
            if name not in COMMANDS and not (rivals and rivals[0][0].found.is_own):
                rivals.append((state, declared))
    return {name: rivals for name, rivals in found.items() if rivals}


def _host_of(ctx: click.Context) -> Host:
    """The host of one call of the command line, made when it is first needed. Raises ConfigError."""
    from graphdock.plugin.host import configured_host

    if "graphdock.host" not in ctx.meta:
        ctx.meta["graphdock.host"] = configured_host()
    host: Host = ctx.meta["graphdock.host"]
    return host


class _Commands(click.Group):
    """Commands that are imported when they are called: those of :data:`COMMANDS`, and those of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *(name for name, rivals in _of_plugins(_host_of(ctx)).items() if rivals[0][1])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            return _own(cmd_name)
        rivals = _of_plugins(_host_of(ctx)).get(cmd_name)
        if rivals is None:
            return None
        from graphdock.cli.command_tools import Tools

        ctx.obj = Tools()
        return _command_of(cmd_name, rivals)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and name not in _of_plugins(_host_of(ctx)):
            hint = _host_of(ctx).who_brings("commands", name) or did_you_mean(name, self.list_commands(ctx))
            raise click.UsageError(f"no command {name!r}" + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = list(COMMANDS.items())
        others: list[tuple[str, str]] = []
        try:
            found = _of_plugins(_host_of(ctx))
        except GraphdockError as error:  # such as a wrong configuration: help is what cures it
            from graphdock.plugin.host import Host

            found = {n: rivals for n, rivals in _of_plugins(Host()).items() if rivals[0][0].found.is_own}
            others = [("", f"not known: {error.text}")]
        for name, rivals in found.items():
            if rivals[0][1]:
                (own if rivals[0][0].found.is_own else others).append((name, _summary(rivals)))
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


def _own(name: str) -> click.Command:
    module = f"graphdock.cli.{name}"
    try:
        command: click.Command = importlib.import_module(module).command
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise click.ClickException(f"this installation has no command {name!r} ({module} is missing)") from error
    return command


def _summary(rivals: list[tuple[PluginState, CommandDecl | None]]) -> str:
    able = [state.name for state, _ in rivals if state.usable]
    if len(able) > 1:
        return f"(several plugins bring it: {', '.join(able)})"
    state, declared = next((r for r in rivals if r[0].usable), rivals[0])
    return declared.summary if able and declared else f"(can't be used: {state.stage}: {state.cause})"


def _command_of(name: str, rivals: list[tuple[PluginState, CommandDecl | None]]) -> click.Command:
    """Import a plugin's command.

    Raises:
      PluginError: the plugin is stopped, what its manifest names is no command, or another plugin brings one of that name.
    """
    able = [r for r in rivals if r[0].usable]
    state, declared = (able or rivals)[0]
    if len(able) > 1:
        each = [f"{state.name!r} ({state.found.release})" for state, _ in able]
        raise PluginError(
            f"several plugins bring a command {name!r}: {', '.join(each)}",
            hint=f'`block = ["{able[1][0].name}"]` under [plugins] leaves the first',
        )
    if not state.usable or declared is None:
        raise state.unusable()
    try:
        found = importlib.import_module(declared.module).command
    except GraphdockError:
        raise
    except Exception as error:  # whatever the plugin's module raises
        raise PluginError(f"{state}: its command can't be imported: {type(error).__name__}: {error}") from error
    if not isinstance(found, click.Command):
        raise PluginError(
            f"{state}: {declared.module}.command is no command", expected="a click.Command", got=repr(found)
        )
    return found


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        from graphdock.contracts import API_VERSION

        click.echo(f"graphdock {version('graphdock')} (contracts {API_VERSION[0]}.{API_VERSION[1]})")
        ctx.exit()


@click.group(
    cls=_Commands,
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
