"""The command line, ``graphdock``. Each command is a module of its own, imported when it is called.

Exit status: 0 all is well, 1 something was found (a fault, no kernel), 2 the call was wrong.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from graphdock.errors import ConfigError, GraphdockError, NotFoundError, did_you_mean

__all__ = ["COMMANDS", "LazyGroup", "cli", "main"]

#: Command -> module that exposes ``command``, and its line in ``graphdock --help``.
COMMANDS: dict[str, tuple[str, str]] = {
    "plugins": ("graphdock.cli.plugins", "List installed plugins; imports none of them."),
    "doctor": ("graphdock.cli.doctor", "Load and probe every plugin, and say what is wrong."),
    "devices": ("graphdock.cli.devices", "List the devices that plugins find."),
    "ops": ("graphdock.cli.ops", "List ops, or describe one."),
    "kernels": ("graphdock.cli.kernels", "List the kernels of an op."),
    "explain": ("graphdock.cli.explain", "Say where each node of a program runs, and why."),
    "profile": ("graphdock.cli.profile", "Run a program's step and say where its time goes."),
    "import": ("graphdock.cli.import_graph", "Read a graph of TensorFlow, and say what graphdock lacks of it."),
    "compat": ("graphdock.cli.compat", "Say which of TensorFlow 1's names a script uses that are not here."),
    "error": ("graphdock.cli.error", "Say what causes an error, and what cures it."),
    "config": ("graphdock.cli.config", "Print every setting and where it comes from."),
    "new": ("graphdock.cli.new", "Start a plugin package or an op."),
    "opgen": ("graphdock_opgen.cli", "Generate, check and compare what comes from op specs."),
    "demo": ("graphdock.cli.demo", "Train two small networks on handwritten digits."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called; ``table`` is as :data:`COMMANDS`."""

    def __init__(self, *args: Any, table: dict[str, tuple[str, str]] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
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
        if name not in self.table and not name.startswith("-"):
            hint = did_you_mean(name, self.table)
            raise click.UsageError(f"no command {name!r}" + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of graphdock's becomes one message and an exit status."""
        try:
            return super().invoke(ctx)
        except GraphdockError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2 if isinstance(error, (ConfigError, NotFoundError)) else 1)


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        from graphdock.contracts import API_VERSION

        click.echo(f"graphdock {version('graphdock')} (contracts {API_VERSION[0]}.{API_VERSION[1]})")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
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
