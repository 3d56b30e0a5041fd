"""``tf.estimator.RunConfig``: how an Estimator runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from graphdock.errors import UnimplementedError

#: Stands for an argument that was not given.
_NOT_GIVEN: Any = object()
#: Arguments of runs on several machines, which are refused.
_REFUSED = ("train_distribute", "eval_distribute", "experimental_distribute", "protocol")


class RunConfig:
    """Settings of an Estimator, on this machine.

    Args:
      model_dir: folder of checkpoints and events. tf_random_seed: the graph's seed; None: 1.
      save_summary_steps: steps from one summary to the next.
      save_checkpoints_steps, save_checkpoints_secs: steps or seconds between checkpoints; default: 600 seconds; both None: never.
      session_config: of the sessions.
      keep_checkpoint_max, keep_checkpoint_every_n_hours: as of ``tf.train.Saver``.
      log_step_count_steps: steps from one line with loss and steps per second to the next; None: none.
      device_fn: device of each operation, as ``Graph.device`` takes it.
      experimental_max_worker_delay_secs, session_creation_timeout_secs: taken, without effect.
      train_distribute, eval_distribute, experimental_distribute, protocol: refused.

    Raises:
      ValueError: both ``save_checkpoints_steps`` and ``save_checkpoints_secs``, or a number that is too small.
      UnimplementedError: an argument of runs on several machines.
    """

    #: Facts of a run on one machine, which model functions ask for.
    cluster_spec: Any = None
    evaluation_master = ""
    global_id_in_cluster = 0
    is_chief = True
    master = ""
    num_ps_replicas = 0
    num_worker_replicas = 1
    service: Any = None
    task_id = 0
    task_type = "worker"

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
                raise UnimplementedError(f"RunConfig.{name}: an Estimator runs on one machine")
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

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with some arguments changed.

        Raises:
          ValueError: an argument is not known, or as of the constructor.
        """
        unknown = sorted(kwargs.keys() - vars(self).keys())
        if unknown:
            raise ValueError(f"Replacing {unknown[0]} is not supported. Allowed properties are {sorted(vars(self))}.")
        arguments = {**vars(self), **kwargs}
        for one, other in (
            ("save_checkpoints_steps", "save_checkpoints_secs"),
            ("save_checkpoints_secs", "save_checkpoints_steps"),
        ):
            if one in kwargs and other not in kwargs and kwargs[one] is not None:
                arguments[other] = None
        made = copy.copy(self)
        made.__init__(**arguments)  # type: ignore[misc]
        return made
