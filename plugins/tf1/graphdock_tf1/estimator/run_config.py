"""``tf.estimator.RunConfig``: how an Estimator runs."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.errors import UnimplementedError

from graphdock_tf1.cluster.tf_config import RunFacts, read_tf_config, run_facts

#: Stands for an argument that was not given.
_NOT_GIVEN: Any = object()
#: Arguments of strategies, which are refused.
_REFUSED = ("train_distribute", "eval_distribute", "experimental_distribute", "protocol")

#: What a RunConfig has of ``TF_CONFIG``.
_FACTS = frozenset(f.name for f in dataclasses.fields(RunFacts)) - {"device_filters"}


class RunConfig:
    """Settings of an Estimator, and what the environment variable ``TF_CONFIG`` says of the cluster that it runs on.

    ``TF_CONFIG`` is a table of JSON: ``cluster``, as ``tf.train.ClusterSpec`` takes it, with one ``chief`` (or ``master``);
    ``task``, with ``type`` and ``index``; and, if need be, ``session_master``, ``eval_session_master``, ``service`` and
    ``model_dir``. It is read when a RunConfig is made; without it the run is one worker's, the chief's.

    Args:
      model_dir: folder of checkpoints and events. tf_random_seed: the graph's seed; None: 1.
      save_summary_steps: steps from one summary to the next.
      save_checkpoints_steps, save_checkpoints_secs: steps or seconds between checkpoints; default: 600 seconds; both None: never.
      session_config: of the sessions; default on a cluster: they see the servers and their own task, and place softly.
      keep_checkpoint_max, keep_checkpoint_every_n_hours: as of ``tf.train.Saver``.
      log_step_count_steps: steps from one line with loss and steps per second to the next; None: none.
      device_fn: device of each operation, as ``Graph.device`` takes it.
      session_creation_timeout_secs: how long workers wait for the chief. experimental_max_worker_delay_secs: without effect.
      train_distribute, eval_distribute, experimental_distribute, protocol: refused.

    Raises:
      ValueError: both ``save_checkpoints_steps`` and ``save_checkpoints_secs``, a number that is too small, or a ``TF_CONFIG``
        without one chief or with a task that is not there. ConfigError: ``TF_CONFIG`` is no table of JSON.
      UnimplementedError: an argument of strategies.

    Attributes:
      cluster_spec: the cluster. task_type, task_id: job and number of this process. is_chief: whether it is the chief's.
      master, evaluation_master: targets of its sessions.
      num_ps_replicas, num_worker_replicas: how many servers and workers, the chief among them, there are.
      global_id_in_cluster: its number among all tasks, the chief's 0 and those of servers last. service: what ``TF_CONFIG`` says.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int = 100,
        save_checkpoints_steps: int | None = _NOT_GIVEN,
        save_checkpoints_secs: float | None = _NOT_GIVEN,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Callable[[Any], Any] | None = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: float | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        given = dict(locals())
        for name in _REFUSED:
            if given[name] is not None:
                raise UnimplementedError(f"RunConfig.{name}: there are no strategies here")
        self._facts = run_facts()
        model_dir = _model_dir(read_tf_config().get("model_dir"), model_dir)
        if session_config is None and self._facts.device_filters is not None:
            session_config = _tf.SessionConfig(fallback="allow", device_filters=self._facts.device_filters)
        steps, seconds = save_checkpoints_steps, save_checkpoints_secs
        if steps is _NOT_GIVEN and seconds is _NOT_GIVEN:
            steps, seconds = None, 600
        steps, seconds = (None if each is _NOT_GIVEN else each for each in (steps, seconds))
        if steps is not None and seconds is not None:
            raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")
        for name, value, least in (
            ("save_checkpoints_steps", steps, 0),
            ("save_checkpoints_secs", seconds, 0),
            ("save_summary_steps", save_summary_steps, 0),
            ("keep_checkpoint_max", keep_checkpoint_max, 0),
            ("log_step_count_steps", log_step_count_steps, 1),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} should be >= {least}, given: {value}")
        if model_dir is not None and not model_dir:
            raise ValueError("model_dir should be non-empty")
        self.model_dir = model_dir
        self.tf_random_seed = 1 if tf_random_seed is None else tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps = steps
        self.save_checkpoints_secs = seconds
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        self.device_fn = device_fn
        self.session_creation_timeout_secs = session_creation_timeout_secs

    def __getattr__(self, name: str) -> Any:
        if name in _FACTS:
            return getattr(self.__dict__["_facts"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with some arguments changed.

        Raises:
          ValueError: an argument is not known, or as of the constructor.
        """
        own = {name: value for name, value in vars(self).items() if name != "_facts"}
        unknown = sorted(kwargs.keys() - own.keys())
        if unknown:
            raise ValueError(f"Replacing {unknown[0]} is not supported. Allowed properties are {sorted(own)}.")
        arguments = {**own, **kwargs}
        for one, other in (
            ("save_checkpoints_steps", "save_checkpoints_secs"),
            ("save_checkpoints_secs", "save_checkpoints_steps"),
        ):
            if one in kwargs and other not in kwargs and kwargs[one] is not None:
                arguments[other] = None
        made = copy.copy(self)
        made.__init__(**arguments)  # type: ignore[misc]
        made._facts = self._facts
        return made


def _model_dir(of_cluster: Any, given: str | None) -> str | None:
    """The folder that ``TF_CONFIG`` or the program says. Raises ValueError: they say two."""
    if of_cluster is None:
        return given
    if not of_cluster:
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if given is not None and given != of_cluster:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in TF_CONFIG. "
            f'model_dir: {given}\nTF_CONFIG["model_dir"]: {of_cluster}.\n'
        )
    return str(of_cluster)
