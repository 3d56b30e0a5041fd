"""``tf.estimator.Estimator``: a model as a function of features, labels and a mode."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import graphdock as _tf
from graphdock.errors import UnimplementedError

from graphdock_tf1.estimator.exporting import export
from graphdock_tf1.estimator.model import call_input_fn, call_model_fn, check_model_fn
from graphdock_tf1.estimator.run_config import RunConfig
from graphdock_tf1.estimator.spec import EstimatorSpec, ModeKeys
from graphdock_tf1.estimator.stopping import StopAfterEvaluations
from graphdock_tf1.estimator.warm_starting import warm_start_settings

_log = logging.getLogger("graphdock")


class Estimator:
    """A model that is trained, evaluated, asked and exported, each in a graph and a session of its own.

    Args:
      model_fn: takes ``features`` and, where it has such arguments, ``labels``, ``mode``, ``params`` and ``config``; returns an
        EstimatorSpec.
      model_dir: folder of checkpoints and events; default: the configuration's, else a new temporary one.
      config: a RunConfig. params: handed to ``model_fn``.
      warm_start_from: a checkpoint whose values trainable variables begin with, or a WarmStartSettings.

    Raises:
      ValueError: ``model_fn`` has other arguments, two folders are given, or ``warm_start_from`` is neither.

    Threads: one at a time.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        check_model_fn(model_fn, params)
        config = RunConfig() if config is None else config
        if not isinstance(config, RunConfig):
            raise ValueError(f"config must be an instance of RunConfig, received {config}.")  # noqa: TRY004 - TensorFlow's class
        model_dir = None if model_dir is None else os.fspath(model_dir)
        if model_dir is not None and config.model_dir not in (None, model_dir):
            raise ValueError(
                "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
                f"In constructor: '{model_dir}', in `RunConfig`: '{config.model_dir}'"
            )
        self._warm_start_from = warm_start_settings(warm_start_from)
        folder = model_dir or config.model_dir
        if folder is None:
            folder = tempfile.mkdtemp()
            _log.warning("Using temporary folder as model directory: %s", folder)
        self._config = config.replace(model_dir=folder)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})

    @property
    def model_dir(self) -> str:
        """Folder of checkpoints and events."""
        return str(self._config.model_dir)

    @property
    def config(self) -> RunConfig:
        """A copy of the configuration."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        """A copy of what ``model_fn`` is handed."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., Any]:
        """A function of ``features, labels, mode, config`` that calls the model's."""

        def called(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return call_model_fn(self._model_fn, features, labels, mode, self.params, config)

        return called

    # -- training

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Self:
        """Train from the last checkpoint on, to the end of the input or for a number of steps.

        Args:
          input_fn: gives ``(features, labels)``, or a dataset of such.
          hooks: SessionRunHooks. steps: how many more. max_steps: up to which step; nothing where it is reached.
          saving_listeners: CheckpointSaverListeners.

        Returns:
          This Estimator.

        Raises:
          ValueError: both numbers of steps, or one below 1. TypeError: a hook or listener is none.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        for name, number in (("steps", steps), ("max_steps", max_steps)):
            if number is not None and number <= 0:
                raise ValueError(f"Must specify {name} > 0, given: {number}")
        if max_steps is not None and max_steps <= self._saved_step():
            _log.info("Skipping training since max_steps has already saved.")
            return self
        given = _checked("hooks", hooks, _tf.train.SessionRunHook)
        listeners = _checked("saving_listeners", saving_listeners, _tf.train.CheckpointSaverListener)
        if steps is not None or max_steps is not None:
            given.append(_tf.train.StopAtStepHook(num_steps=steps, last_step=max_steps))
        with self._graph() as step:
            spec = self._spec(input_fn, ModeKeys.TRAIN)
            self._run_training(spec, step, given, listeners)
        return self

    def _run_training(self, spec: EstimatorSpec, step: Any, hooks: list[Any], listeners: list[Any]) -> None:
        config, train = self._config, _tf.train
        if self._warm_start_from is not None:
            train.warm_start(*self._warm_start_from)
        _tf.summary.scalar("loss", spec.loss)
        hooks = [*hooks, train.NanTensorHook(spec.loss)]
        if config.log_step_count_steps:
            told = {"loss": spec.loss, "step": step}
            hooks.append(train.LoggingTensorHook(told, every_n_iter=config.log_step_count_steps))
        hooks += spec.training_hooks
        self._have_saver(spec)
        chief = list(spec.training_chief_hooks)
        saving = [h for h in (*hooks, *chief) if isinstance(h, train.CheckpointSaverHook)]
        if not saving and (config.save_checkpoints_secs or config.save_checkpoints_steps):
            every = {"save_secs": config.save_checkpoints_secs, "save_steps": config.save_checkpoints_steps}
            saving = [train.CheckpointSaverHook(self.model_dir, scaffold=spec.scaffold, **every)]
            chief = [*saving, *chief]
        if listeners and not saving:
            raise ValueError(
                "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
                "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
            )
        if listeners:
            saving[0].add_listeners(listeners)
        loss = None
        with train.MonitoredTrainingSession(
            config.master,
            config.is_chief,
            checkpoint_dir=self.model_dir,
            scaffold=spec.scaffold,
            hooks=hooks,
            chief_only_hooks=chief,
            save_checkpoint_secs=0,
            save_summaries_steps=config.save_summary_steps,
            config=config.session_config,
            log_step_count_steps=config.log_step_count_steps,
            max_wait_secs=config.session_creation_timeout_secs,
        ) as session:
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
        if loss is None:
            _log.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
        else:
            _log.info("Loss for final step: %s.", loss)

    def _have_saver(self, spec: EstimatorSpec) -> None:
        """Add a Saver with the configuration's numbers where the model brings none."""
        if spec.scaffold.saver is None and not _tf.get_collection(_tf.GraphKeys.SAVERS):
            config = self._config
            saver = _tf.train.Saver(
                sharded=True,
                max_to_keep=config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                defer_build=True,
            )
            _tf.add_to_collection(_tf.GraphKeys.SAVERS, saver)

    # -- evaluation and prediction

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The model's metrics over an input, with the mean of the batches' losses as ``loss``, and ``global_step``.

        Args:
          input_fn: as of :meth:`train`. steps: how many batches; default: to the end of the input.
          hooks: SessionRunHooks.
          checkpoint_path: default: the last one; where there is none, variables are initialised.
          name: of several evaluations; the values are written to ``eval_name`` in ``model_dir``.

        Raises:
          ValueError: ``steps`` below 1, or a metric of the model is called ``loss``.
        """
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        given = _checked("hooks", hooks, _tf.train.SessionRunHook)
        with self._graph() as step:
            evaluation = self._evaluation(input_fn, step)
            spec = evaluation.spec
            given += [*spec.evaluation_hooks, *([] if steps is None else [StopAfterEvaluations(steps)])]
            return self._evaluated(evaluation, self._session(spec, checkpoint_path, [*given, evaluation.final]), name)

    def _evaluation(self, input_fn: Callable[..., Any], step: Any) -> _Evaluation:
        """Operations of an evaluation, in the default graph."""
        spec = self._spec(input_fn, ModeKeys.EVAL)
        if "loss" in spec.eval_metric_ops:
            raise ValueError(
                'Metric with name "loss" is not allowed, because Estimator already defines a default metric with the same name.'
            )
        metrics = {**spec.eval_metric_ops, "loss": _tf.metrics.mean(spec.loss)}
        updates = _tf.group(*(update for _, update in metrics.values()))
        final = _tf.train.FinalOpsHook({"global_step": step, **{key: value for key, (value, _) in metrics.items()}})
        return _Evaluation(spec, updates, final)

    def _evaluated(self, evaluation: _Evaluation, opened: Any, name: str | None) -> dict[str, Any]:
        """Run an evaluation in a session that ends with its input; its numbers, which are written to events too."""
        with opened as session:
            while not session.should_stop():
                session.run(evaluation.updates)
        found: dict[str, Any] = evaluation.final.final_ops_values
        _log.info("Saving dict for global step %s: %s", found["global_step"], found)
        self._write(found, self.eval_dir(name))
        return found

    def _write(self, found: Mapping[str, Any], folder: str) -> None:
        """Write the numbers of an evaluation to an event file."""
        summary = _tf.Summary()
        for name, value in sorted(found.items()):
            if name != "global_step" and getattr(value, "ndim", 1) == 0 and value.dtype.kind in "fiu":
                summary.value.add(tag=name, simple_value=float(value))
        writer = _tf.summary.FileWriterCache.get(folder)
        writer.add_summary(summary, int(found["global_step"]))
        writer.flush()

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """The model's predictions of an input, one row after the other.

        Args:
          input_fn: gives features; labels beside them are left out.
          predict_keys: names of predictions; default: all. hooks, checkpoint_path: as of :meth:`evaluate`.
          yield_single_examples: give rows of a batch one by one, else batches.

        Yields:
          An array, or name -> array.

        Raises:
          ValueError: none of ``predict_keys`` is there, or arrays of a batch have several lengths.
        """
        given = _checked("hooks", hooks, _tf.train.SessionRunHook)
        with self._graph():
            spec = self._spec(input_fn, ModeKeys.PREDICT)
            wanted = _selected(spec.predictions, predict_keys)
            opened = self._session(spec, checkpoint_path, [*given, *spec.prediction_hooks])
        with opened as session:
            while not session.should_stop():
                found = session.run(wanted)
                if not yield_single_examples:
                    yield found
                elif not isinstance(found, Mapping):
                    yield from found
                else:
                    lengths = {key: len(value) for key, value in found.items()}
                    if len(set(lengths.values())) > 1:
                        raise ValueError(f"Batch length of predictions should be same. {lengths}")
                    for i in range(next(iter(lengths.values()))):
                        yield {key: value[i] for key, value in found.items()}

    def _session(self, spec: EstimatorSpec, checkpoint_path: str | None, hooks: list[Any]) -> Any:
        path = checkpoint_path or self.latest_checkpoint()
        if path is None:
            _log.info("Could not find trained model in model_dir: %s, running initialization.", self.model_dir)
        creator = _tf.train.ChiefSessionCreator(
            spec.scaffold,
            self._config.evaluation_master,
            self._config.session_config,
            checkpoint_filename_with_path=path,
        )
        return _tf.train.MonitoredSession(creator, hooks)

    # -- files

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Write a SavedModel that predicts to a new folder, named after the time, below ``export_dir_base``.

        Args:
          serving_input_receiver_fn: gives a ServingInputReceiver.
          assets_extra: path in ``assets.extra`` -> a file that is copied there. as_text: write the graph as text.
          checkpoint_path: default: the last one. experimental_mode: ``PREDICT``.

        Returns:
          The folder's path, as bytes.

        Raises:
          ValueError: there is no checkpoint, or none of several outputs is the default. UnimplementedError: another mode.
        """
        if experimental_mode != ModeKeys.PREDICT:
            raise UnimplementedError("export_saved_model exports what predicts", got=experimental_mode)
        path = checkpoint_path or self.latest_checkpoint()
        if path is None:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        with self._graph():
            receiver = serving_input_receiver_fn()
            spec = call_model_fn(self._model_fn, receiver.features, None, ModeKeys.PREDICT, self.params, self.config)
            return export(
                os.fspath(export_dir_base), path, spec, receiver, assets_extra, as_text, self._config.session_config
            )

    def export_savedmodel(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """:meth:`export_saved_model`, by its older name; ``strip_default_attrs`` is taken and means nothing."""
        return self.export_saved_model(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
        )

    def latest_checkpoint(self) -> str | None:
        """The path of the last checkpoint; None where there is none."""
        return _tf.train.latest_checkpoint(self.model_dir)

    def eval_dir(self, name: str | None = None) -> str:
        """The folder of an evaluation's events."""
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")

    def get_variable_names(self) -> list[str]:
        """Names of the last checkpoint's variables. Raises ValueError: there is no checkpoint."""
        return [name for name, _ in _tf.train.list_variables(self._found())]

    def get_variable_value(self, name: str) -> Any:
        """The array of a variable of the last checkpoint. Raises ValueError: there is no checkpoint."""
        return _tf.train.load_variable(self._found(), name)

    def _found(self) -> str:
        path = self.latest_checkpoint()
        if path is None:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        return path

    def _saved_step(self) -> int:
        path = self.latest_checkpoint()
        return 0 if path is None else int(_tf.train.load_variable(path, _tf.GraphKeys.GLOBAL_STEP))

    # -- graphs

    def _graph(self) -> _NewGraph:
        return _NewGraph(self._config)

    def _spec(self, input_fn: Callable[..., Any], mode: str) -> EstimatorSpec:
        features, labels = call_input_fn(input_fn, mode, self.params, self.config)
        labels = None if mode == ModeKeys.PREDICT else labels
        return call_model_fn(self._model_fn, features, labels, mode, self.params, self.config)


class _Evaluation(NamedTuple):
    """A model's operations that evaluate; ``final``: the hook that has the metrics at the end."""

    spec: EstimatorSpec
    updates: Any
    final: Any


class _NewGraph:
    """A new default graph with the configuration's seed and devices; gives its global step."""

    def __init__(self, config: RunConfig) -> None:
        device = config.device_fn
        if device is None and config.num_ps_replicas:
            worker = f"/job:{config.task_type}/task:{config.task_id}"
            device = _tf.train.replica_device_setter(worker_device=worker, cluster=config.cluster_spec)
        self._device = device
        self._entered = contextlib.ExitStack()
        self._seed = config.tf_random_seed

    def __enter__(self) -> Any:
        self._entered.enter_context(_tf.Graph(_tf.get_default_graph().host).as_default())
        self._entered.enter_context(_tf.device(self._device))  # of the graph that is the default one now
        _tf.set_random_seed(self._seed)
        return _tf.train.create_global_step()

    def __exit__(self, *error: Any) -> None:
        self._entered.__exit__(*error)


def _checked(name: str, given: Sequence[Any] | None, kind: type) -> list[Any]:
    """A list of what is given. Raises TypeError: one is of another class."""
    for each in given or ():
        if not isinstance(each, kind):
            raise TypeError(f"All {name} must be {kind.__name__} instances, given: {each}")
    return list(given or ())


def _selected(predictions: Any, keys: Any) -> Any:
    """The predictions of some names. Raises ValueError: there is none of them, or they have no names."""
    if keys is None:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")  # noqa: TRY004 - TensorFlow's class
    names = [keys] if isinstance(keys, str) else list(keys)
    found = {name: tensor for name, tensor in predictions.items() if name in names}
    if not found:
        raise ValueError(f"Expected to run at least one output from {list(predictions)}, provided {names}.")
    return found
