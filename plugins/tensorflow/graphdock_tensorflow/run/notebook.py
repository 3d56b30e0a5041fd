"""``graphdock notebook``: Jupyter, in whose notebooks ``import tensorflow`` is graphdock."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import click
from graphdock.errors import UnavailableError

from graphdock_tensorflow.run.command import shared_options
from graphdock_tensorflow.run.finder import Options, install

__all__ = ["command"]


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    help="Start Jupyter, with ARGS as its own, so that `import tensorflow` is graphdock in each notebook.",
)
@shared_options
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    toy_data: bool,
    old_numpy: bool,
    before_one: bool,
    backends: str | None,
    arguments: tuple[str, ...],
) -> None:
    program = next((p for p in ("jupyterlab", "notebook") if importlib.util.find_spec(p) is not None), None)
    if program is None:
        raise UnavailableError("Jupyter is not installed", hint="pip install notebook")
    if backends is not None:
        os.environ["GRAPHDOCK_BACKENDS"] = backends
    install(Options(before_one, old_numpy, toy_data))
    ctx.exit(subprocess.run([sys.executable, "-m", program, *arguments], check=False).returncode)
