"""SyncReplicasOptimizer: replicas that take their steps together, each step from the mean of their gradients."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.arguments import check_type
from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_tf1.cluster.device_spec import DeviceSpec
from graphdock_tf1.train.hooks.sync_replicas import SyncReplicasHook
from graphdock_tf1.train.moving_averages import ExponentialMovingAverage
from graphdock_tf1.train.optimizer import Optimizer
from graphdock_tf1.train.supervision.token_runner import TokenRunner

_log = logging.getLogger("graphdock")


class SyncReplicasOptimizer(Optimizer):
    """Applies the mean of the gradients of several replicas, which wait for one another, by another optimizer.

    Chen, Pan, Monga, Bengio and Jozefowicz, "Revisiting distributed synchronous SGD", 2016. Each replica adds its gradients to one
    accumulator per variable, which lies beside the variable, and takes a token out of a queue. The chief's queue runner waits for
    ``replicas_to_aggregate`` gradients of each variable, applies their means, counts the global step up, and puts as many tokens
    into the queue as there are replicas. Gradients that were begun before the last update come too late: they are dropped, and
    their number is logged now and then. In a ``deterministic`` session sums do not depend on which gradient came first.

        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=4)
        train_op = opt.minimize(loss, global_step=tf.train.get_or_create_global_step())
        with tf.train.MonitoredTrainingSession(target, is_chief, hooks=[opt.make_session_run_hook(is_chief)]) as sess:
            while not sess.should_stop():
                sess.run(train_op)

    Variables, accumulators and queue are shared: by tasks of a cluster, or by the sessions of one container. Each replica has a
    step of its own, the local variable ``sync_rep_local_step``, which is never in a named container.

    Args:
      opt: the optimizer. replicas_to_aggregate: gradients of each variable that make an update.
      total_num_replicas: how many replicas there are, default ``replicas_to_aggregate``. With more, those who come last in a step
        are backups; with fewer, replicas compute several gradients in a step.
      variable_averages, variables_to_average: an ExponentialMovingAverage, applied to these variables after each update.
      use_locking: taken for TensorFlow's sake. name: of what it adds to the graph.

    Raises:
      ArgumentTypeError: ``opt`` is no Optimizer, a number is none, or ``variable_averages`` something else.
      InvalidArgumentError: a number below 1.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: ExponentialMovingAverage | None = None,
        variables_to_average: Sequence[Any] | None = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        if not isinstance(opt, Optimizer):
            raise ArgumentTypeError(f"{name}: opt must be an Optimizer", got=repr(opt))
        for what, number in (("replicas_to_aggregate", replicas_to_aggregate), ("total_num_replicas", total)):
            check_type(number, int, f"{name}: {what}", "an integer")
            if number < 1:
                raise InvalidArgumentError(f"{name}: {what} must be at least 1", got=str(number))
        if not isinstance(variable_averages, ExponentialMovingAverage | None):
            raise ArgumentTypeError(
                f"{name}: variable_averages must be an ExponentialMovingAverage", got=repr(variable_averages)
            )
        _log.info("SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s", replicas_to_aggregate, total)
        self._opt = opt
        self._required = replicas_to_aggregate
        self._total = total
        self._averages = variable_averages
        self._averaged = variables_to_average
        self._global_step: Any = None
        self._tokens: Any = None
        self._runner: TokenRunner | None = None
        self._accumulators: list[tuple[Any, str]] = []
        #: What the hook runs; there once :meth:`apply_gradients` was called.
        self.local_step_init_op: Any = None
        self.ready_for_local_init_op: Any = None
        self.chief_init_op: Any = None

    @property
    def _gradients_applied(self) -> bool:
        return self._runner is not None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, _tf.Variable]]:
        """Gradients of this replica alone, as of ``opt``: clipping them here clips each replica's."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """A replica's step: adds the gradients, waits for a token, and gives the new value of the step.

        Args:
          grads_and_vars: pairs as of :meth:`compute_gradients`. global_step: a Variable, counted up by each update.
          name: taken for TensorFlow's sake.

        Raises:
          InvalidArgumentError: no pairs, no global step, or a gradient that is neither Tensor nor IndexedSlices.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise InvalidArgumentError("Must supply at least one variable")
        if global_step is None:
            raise InvalidArgumentError("Global step is required to check staleness")
        self._global_step = global_step
        worker = _tf.no_op()
        with _tf.container(""), _tf.colocate_with(worker):
            local_step = _tf.Variable(
                0,
                trainable=False,
                collections=[_tf.GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype,
                name="sync_rep_local_step",
            )
        self.ready_for_local_init_op = _tf.report_uninitialized_variables(_tf.global_variables())
        replica = _number_of(DeviceSpec.from_string(worker.device or ""))
        with _tf.name_scope(None, self._name):
            added, means, accumulators = [], [], self._accumulators
            with _tf.device(worker.device or ""):
                began = _tf.cast(local_step.read_value(), _tf.int64)  # once: each tensor is a message to a server
            for grad, var in pairs:
                with _tf.device(var.device or ""):
                    if grad is None:
                        means.append((None, var))
                        continue
                    accumulator, add, mean = self._accumulated(grad, var, began, replica)
                added.append(add)
                means.append((mean, var))
                accumulators.append((accumulator, var.device or ""))
            with _tf.device(global_step.device or ""), _tf.name_scope(""):
                update = self._opt.apply_gradients(means, global_step)
                tokens = self._tokens = _tf.FIFOQueue(
                    -1, global_step.dtype, shapes=(), name="sync_token_q", shared_name="sync_token_q"
                )
                generation = self._generation(replica)
                with _tf.control_dependencies(added):
                    token = _ops.apply_op(
                        "GraphdockQueueDequeueSince",
                        handle=tokens.queue_ref,
                        generation=generation,
                        after=began,
                        component_types=tokens.dtypes,
                    )
                    (token,) = token if isinstance(token, list) else [token]
                    token.set_shape(())
                train = local_step.assign(token)
                with _tf.control_dependencies([update]):
                    each = _tf.fill([max(self._total, self._required)], global_step)
                    sync = tokens.enqueue_many((each,))
                if self._averages is not None:
                    with _tf.control_dependencies([sync]):
                        sync = self._averages.apply(self._averaged)
                #: Gives a token back that this replica took and has no use for.
                self._return_token_op = tokens.enqueue(local_step)
                self._close_op = tokens.close()
            # in this order: a step that was read before the chief began anew is never taken for one of the new generation
            with _tf.control_dependencies([generation.initializer]):
                self.local_step_init_op = local_step.assign(global_step.read_value())
            anew = []
            for accumulator, device in accumulators:
                with _tf.device(device):
                    anew.append(accumulator.reset(global_step, name="SetGlobalStep"))
            with _tf.device(global_step.device or ""), _tf.name_scope(""):
                begin = _ops.apply_op("GraphdockQueueReset", handle=tokens.queue_ref, begins=True, stays=False)
                self._runner = TokenRunner(tokens, sync, _tf.group(*anew), begin)
            self.chief_init_op = _tf.group(self.local_step_init_op, *anew)
        return train

    def _generation(self, replica: int) -> Any:
        """The generation of the queue of tokens in which this replica began; a variable beside the queue."""
        now = _ops.apply_op("GraphdockQueueGeneration", handle=self._tokens.queue_ref)
        name = "sync_rep_generation" if replica < 0 else f"sync_rep_generation_{replica}"
        with _tf.container(""):
            return _tf.Variable(now, trainable=False, collections=[], name=name)

    def _begin_once_op(self) -> Any:
        """Operation in place of ``chief_init_op`` where no tokens are given ahead and each replica counts once a step.

        Where a gradient may be dropped whose replica waits for a token, the queue is begun anew: the others make new sessions. It
        gives whether that is so. It is to be run again then: what others brought while variables were restored came to new ones.
        """
        begun = []
        for accumulator, device in self._accumulators:
            with _tf.device(device):
                begun.append(accumulator.reset(self._global_step, name="BeginAnew", once=True))
        with _tf.device(self._global_step.device or ""), _tf.name_scope(""):
            begins = _tf.reduce_any(_tf.stack(begun))
            tokens = _ops.apply_op("GraphdockQueueReset", handle=self._tokens.queue_ref, begins=begins)
            with _tf.control_dependencies([tokens]):
                return _tf.identity(begins)

    def _accumulated(self, grad: Any, var: Any, step: Any, replica: int) -> tuple[Any, Any, Any]:
        """An accumulator for a variable's gradients, what adds one of a replica, and the mean of enough of them."""
        name = f"{var.name}/grad_accum"
        if isinstance(grad, _tf.IndexedSlices):
            rows = _tf.SparseConditionalAccumulator(grad.dtype, shape=var.shape, shared_name=name)
            add = rows.apply_indexed_slices_grad(grad, local_step=step, replica=replica)
            return rows, add, rows.take_indexed_slices_grad(self._required)
        if not isinstance(grad, _tf.Tensor):
            raise InvalidArgumentError("Unknown grad type!", got=repr(grad))
        whole = _tf.ConditionalAccumulator(grad.dtype, shape=var.shape, shared_name=name)
        return whole, whole.apply_grad(grad, local_step=step, replica=replica), whole.take_grad(self._required)

    def get_chief_queue_runner(self) -> TokenRunner:
        """The QueueRunner of the chief: it waits for gradients, applies them, and hands out tokens.

        Raises:
          InvalidArgumentError: before :meth:`apply_gradients`.
        """
        if self._runner is None:
            raise InvalidArgumentError("Should be called after apply_gradients().")
        return self._runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Any:
        """Tokens that the chief puts in at the beginning, for replicas that compute several gradients in a step.

        Args:
          num_tokens: at least ``replicas_to_aggregate - total_num_replicas``; -1: ``replicas_to_aggregate``.

        Raises:
          InvalidArgumentError: before :meth:`apply_gradients`, or too few.
        """
        if self._runner is None:
            raise InvalidArgumentError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._required - self._total
        if num_tokens == -1:
            num_tokens = self._required
        elif num_tokens < needed:
            raise InvalidArgumentError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)"
            )
        if num_tokens <= 0:
            return _tf.no_op(name="no_init_tokens")
        with _tf.device(self._global_step.device or ""), _tf.name_scope(""):
            return self._tokens.enqueue_many((_tf.fill([num_tokens], self._global_step),))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SyncReplicasHook:
        """A hook for MonitoredSessions that initialises all this, and starts the chief's queue runner.

        Where the input of a replica ends within a step, its hook closes the queue of tokens, so that the others end as well, in
        place of waiting for its gradient. One that ends between two steps gives back the token that it holds.

        Args:
          is_chief: whether it is the chief's. num_tokens: as of :meth:`get_init_tokens_op`.
        """
        return SyncReplicasHook(self, is_chief, num_tokens)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """As of ``opt``."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """As of ``opt``."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[_tf.Variable]:
        """The variables of ``opt``."""
        return self._opt.variables()


def _number_of(device: Any) -> int:
    """A number of the replica on a device, another for each task of the cluster; -1 where no task is said."""
    if device.task is None:
        return -1
    job = device.job or "worker"
    return int(device.task) + (0 if job == "worker" else (zlib.crc32(job.encode()) | 1) << 20)
