"""``graphdock run``: a TensorFlow-1 program as it stands."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import click
from graphdock.contracts.command_line.output import count
from graphdock.contracts.command_line.scripts import LOOK, Look
from graphdock.errors import (
    FailedPreconditionError,
    GraphdockError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    did_you_mean,
)

from graphdock_tensorflow.run.advice import hint_of
from graphdock_tensorflow.run.finder import Options, install, installed_tensorflow

__all__ = ["command", "shared_options"]


def shared_options(function: Any) -> Any:
    for option in (
        click.option("--toy-data", is_flag=True, help="Data sets that are not here are made of scikit-learn's digits."),
        click.option(
            "--old-numpy", is_flag=True, help="Answer names that NumPy and SciPy dropped (np.int, scipy.misc.imread)."
        ),
        click.option(
            "--before-1.0", "before_one", is_flag=True, help="Answer the names and argument orders of 2016 (tf.mul)."
        ),
        click.option("--backends", help="Comma-separated, the most wanted first."),
    ):
        function = option(function)
    return function


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    help="Run SCRIPT, a program of TensorFlow 1, as `python SCRIPT ARGS` would, with graphdock in TensorFlow's place: in this "
    "process and in those that it starts. Nothing on disk changes. What the program asks for that graphdock lacks is listed at the "
    "end, on standard error; the exit status is the program's own.",
)
@click.option(
    "-m",
    "module",
    metavar="MODULE",
    help="Run a module, as `python -m MODULE` would; SCRIPT is then its first argument.",
)
@shared_options
@click.option("--explain", is_flag=True, help="Stop before the first step that trains, and print its plan.")
@click.option(
    "--profile",
    is_flag=True,
    help="Stop before the first step that trains, run it 20 times, and print where time goes.",
)
@click.option("--fetch", metavar="NAME", help="With --explain and --profile: the step that fetches this instead.")
@click.option("--steps", type=click.IntRange(1), help="Stop after this many calls of Session.run, for trying.")
@click.argument("arguments", metavar="[SCRIPT] [ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    module: str | None,
    toy_data: bool,
    old_numpy: bool,
    before_one: bool,
    backends: str | None,
    explain: bool,
    profile: bool,
    fetch: str | None,
    steps: int | None,
    arguments: tuple[str, ...],
) -> None:
    from graphdock_tensorflow.run.steps import Stopped, Watch, watched

    if module is None and not arguments:
        raise click.UsageError("no SCRIPT is named", ctx)
    if module is None and not Path(arguments[0]).is_file():
        raise NotFoundError(f"no script {arguments[0]!r}")
    if explain and profile:
        raise InvalidArgumentError("--explain and --profile ask for two things at one step: name one of them")
    if backends is not None:
        os.environ["GRAPHDOCK_BACKENDS"] = backends
    finder = install(Options(before_one, old_numpy, toy_data))
    other = installed_tensorflow()
    if other is not None:
        click.echo(f"graphdock run: the TensorFlow of {other} is not used: graphdock answers in its place", err=True)
    look = ctx.meta.get(LOOK) or (_explain if explain else _profile if profile else None)
    if fetch is not None and look is None:
        raise InvalidArgumentError(f"--fetch {fetch} names a step to look at: add --explain or --profile")
    watch = Watch(steps, look, fetch)
    process, status, ended = os.getpid(), 0, False
    try:
        with _main(module, arguments), watched(watch) if look or steps else contextlib.nullcontext():
            if module is None:
                runpy.run_path(arguments[0], run_name="__main__")
            else:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
        ended = True
    except Stopped:
        if watch.refusal is not None:
            raise watch.refusal from None
        if look is None:
            click.echo(f"graphdock run: stopped after {count(watch.steps, 'step')}", err=True)
    except SystemExit:
        raise
    except KeyboardInterrupt as error:
        _print(error)
        status = 130
    except Exception as error:  # noqa: BLE001 - whatever the program raises is shown as Python shows it
        _print(error)
        status = 1
    finally:
        if os.getpid() == process and finder.uses.missing():
            sys.stdout.flush()
            click.echo(finder.uses.summary(), err=True)
    if ended and look is not None:
        _at_last(watch, look)
    ctx.exit(status)


@contextlib.contextmanager
def _main(module: str | None, arguments: tuple[str, ...]) -> Iterator[None]:
    """``sys.argv`` and ``sys.path`` as Python gives them to a program."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [module, *arguments] if module is not None else list(arguments)
    sys.path.insert(0, os.getcwd() if module is not None else str(Path(arguments[0]).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _explain(session: Any, fetches: Any, feeds: Any) -> None:
    click.echo(str(session.explain(fetches, feeds)))


def _profile(session: Any, fetches: Any, feeds: Any) -> None:
    import graphdock as tf

    made = tf.profiler.profile(session, fetches, feeds, 20, 3)
    click.echo(f"{made.summary()}\n\n{made.table('node', 20)}")


def _at_last(watch: Any, look: Look) -> None:
    """The program ended and no step of it trained: tell of its largest, in its session where that is still open."""
    if watch.fetch is not None:
        raise NotFoundError(
            f"no step of the program fetches {watch.fetch!r}",
            hint=did_you_mean(watch.fetch, watch.seen)
            or "name a tensor, an "
            f"operation or a variable of the program: its steps fetch {', '.join(sorted(watch.seen)[:8]) or 'nothing'}",
        )
    if watch.largest is None:
        raise NotFoundError("the program ran no step", hint="it ended before any Session.run on its main thread")
    session, fetches, feeds = watch.largest
    click.echo("graphdock run: no step of the program trains; this is its largest", err=True)
    try:
        look(session, fetches, feeds)
    except FailedPreconditionError:  # it is closed
        import graphdock as tf

        with tf.Session(graph=session.graph) as fresh:
            look(fresh, fetches, feeds)


def _print(error: BaseException) -> None:
    """The traceback in the program's own lines, and what to do where that is known."""
    top: TracebackType | None = error.__traceback__
    while top is not None and (top.tb_frame.f_code.co_filename == __file__ or _is_runpy(top)):
        top = top.tb_next
    told = traceback.TracebackException(type(error), error, top)
    if (
        isinstance(error, GraphdockError)
        and not isinstance(error, InternalError)
        and not os.environ.get("GRAPHDOCK_DEBUG")
    ):
        _leave_out_graphdock(told)
    sys.stdout.flush()
    click.echo("".join(told.format()), err=True, nl=False)
    hint = hint_of(error)
    if hint is not None:
        click.echo(f"graphdock run: {hint}", err=True)


def _leave_out_graphdock(told: traceback.TracebackException | None) -> None:
    """Leave out frames of graphdock's packages, where there are others, of an error and those behind it."""
    modules = [m for name, m in sys.modules.items() if name.startswith("graphdock") and "." not in name]
    files = filter(None, (getattr(m, "__file__", None) for m in modules))  # a namespace package has none
    inside = ("<graphdock step", *(str(Path(file).parent) + os.sep for file in files))
    while told is not None:
        own = [frame for frame in told.stack if not frame.filename.startswith(inside)]
        told.stack[:] = own or told.stack
        told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)


def _is_runpy(top: TracebackType) -> bool:
    name = top.tb_frame.f_code.co_filename
    return name == "<frozen runpy>" or name == runpy.__file__
