"""The command line, ``graphdock``. Each command is a module of its own, imported when it is called.

A plugin whose manifest has ``[command]`` has a command of its own name, for whoever may load the plugin. A command of graphdock's
own goes before one of a plugin of that name.

Exit status: 0 all is well, 1 something was found (a fault, no kernel), 2 the call was wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from graphdock.errors import ConfigError, GraphdockError, NotFoundError, PluginError, did_you_mean

if TYPE_CHECKING:
    from graphdock.plugin.state import PluginState

__all__ = ["COMMANDS", "LazyGroup", "cli", "main"]

#: Command -> module that exposes ``command``, and its line in ``graphdock --help``.
COMMANDS: dict[str, tuple[str, str]] = {
    "plugins": ("graphdock.cli.plugins", "List installed plugins; imports none of them."),
    "doctor": ("graphdock.cli.doctor", "Load and probe every plugin, and say what is wrong."),
    "devices": ("graphdock.cli.devices", "List the devices that plugins find."),
    "ops": ("graphdock.cli.ops", "List ops, or describe one."),
    "kernels": ("graphdock.cli.kernels", "List the kernels of an op."),
    "explain": ("graphdock.cli.explain", "Say where each node of a program runs, and why."),
    "profile": ("graphdock_profiler.command", "Run a program's step and say where its time goes."),
    "import": ("graphdock.cli.import_graph", "Read a graph of TensorFlow, and say what graphdock lacks of it."),
    "compat": ("graphdock_tensorflow.compat", "Say which of TensorFlow 1's names a script uses that are not here."),
    "error": ("graphdock.cli.error", "Say what causes an error, and what cures it."),
    "config": ("graphdock.cli.config", "Print every setting and where it comes from."),
    "new": ("graphdock_opgen.new", "Start a plugin package or an op."),
    "opgen": ("graphdock_opgen.cli", "Generate, check and compare what comes from op specs."),
    "demo": ("graphdock_tf1.demo", "Train two small networks on handwritten digits."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called; ``table`` is as :data:`COMMANDS`.

    ``more`` finds those of plugins; it is asked where the table has no such command, and for help.
    """

    def __init__(
        self,
        *args: Any,
        table: dict[str, tuple[str, str]] | None = None,
        more: Callable[[], list[PluginState]] = list,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table or {}
        self.more = more

    def _of_plugins(self) -> dict[str, PluginState]:
        return {state.name: state for state in self.more() if state.name not in self.table}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.table, *(name for name, state in self._of_plugins().items() if state.manifest is not None)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            state = self._of_plugins().get(cmd_name)
            if state is None:
                return None
            from graphdock.cli.command_tools import Tools

            ctx.obj = Tools()
            return _command_of(state)
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
            hint = did_you_mean(name, self.list_commands(ctx))
            raise click.UsageError(f"no command {name!r}" + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])
        try:
            found = [
                (name, _summary(state)) for name, state in self._of_plugins().items() if state.manifest is not None
            ]
        except GraphdockError as error:  # such as a wrong configuration: help is what cures it
            found = [("", f"not known: {error.text}")]
        if found:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(found)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of graphdock's becomes one message and an exit status."""
        try:
            return super().invoke(ctx)
        except GraphdockError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2 if isinstance(error, (ConfigError, NotFoundError)) else 1)


def _plugin_commands() -> list[PluginState]:
    """The installed plugins that have a command, and those of which nobody knows, such as the blocked; imports none of them."""
    from graphdock.plugin.host import configured_host

    states = configured_host().plugins()
    return [s for s in states if not s.usable and s.manifest is None or s.manifest is not None and s.manifest.command]


def _summary(state: PluginState) -> str:
    assert state.manifest is not None and state.manifest.command is not None
    return state.manifest.command.summary if state.usable else f"(can't be used: {state.stage}: {state.cause})"


def _command_of(state: PluginState) -> click.Command:
    """Import a plugin's command. Raises PluginError where the plugin is stopped, or what its manifest names is no command."""
    whose = f"plugin {state.name!r} ({state.found.distribution} {state.found.version})"
    if not state.usable or state.manifest is None or state.manifest.command is None:
        raise PluginError(f"{whose} can't be used: {state.stage}: {state.cause}", hint=state.hint)
    module = state.manifest.command.module
    try:
        found = importlib.import_module(module).command
    except GraphdockError:
        raise
    except Exception as error:  # whatever the plugin's module raises
        raise PluginError(f"{whose}: its command can't be imported: {type(error).__name__}: {error}") from error
    if not isinstance(found, click.Command):
        raise PluginError(f"{whose}: {module}.command is no command", expected="a click.Command", got=repr(found))
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
