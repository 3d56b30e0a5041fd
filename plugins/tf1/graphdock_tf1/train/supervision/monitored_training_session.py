"""MonitoredTrainingSession: a monitored session with the hooks that training wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock_tf1.train.hooks.checkpoint_saver import CheckpointSaverHook
from graphdock_tf1.train.hooks.run_hook import SessionRunHook
from graphdock_tf1.train.hooks.summaries import StepCounterHook, SummarySaverHook
from graphdock_tf1.train.supervision.monitored_session import MonitoredSession
from graphdock_tf1.train.supervision.scaffold import Scaffold
from graphdock_tf1.train.supervision.session_creators import ChiefSessionCreator, WorkerSessionCreator

#: Stands for an argument that was not given.
USE_DEFAULT: Any = object()


def MonitoredTrainingSession(  # noqa: N802 - TensorFlow's name
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = USE_DEFAULT,
    save_summaries_steps: int | None = USE_DEFAULT,
    save_summaries_secs: float | None = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: int | None = USE_DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """A MonitoredSession that restores the last checkpoint of a folder or initialises, saves there, and writes summaries.

    Its hooks are called in this order: the chief's, the counter of steps, summaries, checkpoints, and ``hooks``.

    Args:
      master, config: target and configuration of the sessions.
      is_chief: False for one that waits until another has given the variables values; it has no hooks but ``hooks``.
      checkpoint_dir: folder of the checkpoints; None for none.
      scaffold: parts of the graph. hooks: for chief and workers. chief_only_hooks: for the chief.
      save_checkpoint_secs, save_checkpoint_steps: how often it saves, besides at the beginning and at the end; default: every 600
        seconds. None or 0 for both: never.
      save_summaries_steps, save_summaries_secs: how often it writes summaries; default: every 100 steps. None or 0 for both: never.
      stop_grace_period_secs: how long the end waits for threads. max_wait_secs: how long a worker waits for the chief.
      log_step_count_steps: after how many steps it logs steps per second; None or 0 for never.
      summary_dir: folder of the event file; default: ``checkpoint_dir``.
      save_graph_def: save the graph with each checkpoint.
    """
    summaries = _schedule(save_summaries_steps, save_summaries_secs, (100, None))
    checkpoints = _schedule(save_checkpoint_steps, save_checkpoint_secs, (None, 600))
    scaffold = Scaffold() if scaffold is None else scaffold
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, hooks, stop_grace_period_secs)
    all_hooks = list(chief_only_hooks or ())
    folder = summary_dir or checkpoint_dir
    if folder and log_step_count_steps and log_step_count_steps > 0:
        all_hooks.append(StepCounterHook(output_dir=folder, every_n_steps=log_step_count_steps))
    if folder and summaries != (None, None):
        all_hooks.append(SummarySaverHook(*summaries, output_dir=folder, scaffold=scaffold))
    if checkpoint_dir and checkpoints != (None, None):
        steps, seconds = checkpoints
        all_hooks.append(
            CheckpointSaverHook(checkpoint_dir, seconds, steps, scaffold=scaffold, save_graph_def=save_graph_def)
        )
    all_hooks += hooks or ()
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(chief, all_hooks, stop_grace_period_secs)


def _schedule(steps: Any, seconds: Any, default: tuple[int | None, float | None]) -> tuple[Any, Any]:
    """Steps and seconds, None for what is not to count. Where neither was given, the default."""
    if steps is USE_DEFAULT and seconds is USE_DEFAULT:
        return default
    return tuple(None if each is USE_DEFAULT or not each or each <= 0 else each for each in (steps, seconds))  # type: ignore[return-value]
