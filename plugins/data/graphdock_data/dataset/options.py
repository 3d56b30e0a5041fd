"""Options of datasets, and functions in place of the methods of datasets and iterators. Names are TensorFlow 1's."""

from __future__ import annotations

from typing import Any

from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_data.dataset.dataset import Dataset
from graphdock_data.dataset.iterator import Iterator


class _Settings:
    """Base of named settings, each None until it is set. They are kept; nothing here reads them."""

    _NAMES: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self._NAMES:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._NAMES:
            raise InvalidArgumentError(
                f"{type(self).__name__} has no setting {name!r}", expected=f"one of {', '.join(self._NAMES)}"
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class ThreadingOptions(_Settings):
    """Numbers of threads that a pipeline may take."""

    _NAMES = ("max_intra_op_parallelism", "private_threadpool_size")


class MapVectorizationOptions(_Settings):
    """Return whether TensorFlow may call the function of a map once for a batch."""

    _NAMES = ("enabled", "use_choose_fastest")


class OptimizationOptions(_Settings):
    """Rewrites that TensorFlow's optimiser may do with a pipeline."""

    _NAMES = (
        "apply_default_optimizations",
        "autotune",
        "autotune_algorithm",
        "autotune_buffers",
        "autotune_cpu_budget",
        "filter_fusion",
        "filter_with_random_uniform_fusion",
        "hoist_random_uniform",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "map_vectorization",
        "noop_elimination",
        "parallel_batch",
        "shuffle_and_repeat_fusion",
    )

    def __init__(self) -> None:
        super().__init__()
        self.map_vectorization = MapVectorizationOptions()


class DistributeOptions(_Settings):
    """The split of a pipeline among workers."""

    _NAMES = ("auto_shard", "auto_shard_policy", "num_devices")


class StatsOptions(_Settings):
    """Which statistics of a pipeline are gathered."""

    _NAMES = ("aggregator", "counter_prefix", "latency_all_edges", "prefix")


class Options(_Settings):
    """Options of a dataset, for programs that set them: they are kept, and change nothing.

    Elements come in one order in any case, and are made ahead where the program says so.
    """

    _NAMES = (
        "experimental_deterministic",
        "experimental_distribute",
        "experimental_external_state_policy",
        "experimental_optimization",
        "experimental_slack",
        "experimental_stats",
        "experimental_threading",
    )

    def __init__(self) -> None:
        super().__init__()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = OptimizationOptions()
        self.experimental_stats = StatsOptions()
        self.experimental_threading = ThreadingOptions()

    def merge(self, options: Options) -> Options:
        """These options, and what others set beside them.

        Raises:
          ValueError: both set one of them, to different values.
        """
        made = Options()
        _merge(made, self, options)
        return made


def _merge(made: Any, one: Any, other: Any) -> None:
    for name in made._NAMES:
        mine, its = getattr(one, name), getattr(other, name)
        if isinstance(mine, _Settings) and isinstance(its, _Settings):
            inner = type(mine)()
            _merge(inner, mine, its)
            setattr(made, name, inner)
        elif mine is not None and its is not None and mine != its:
            raise InvalidArgumentError(f"two options say {name} differently", expected=str(mine), got=str(its))
        else:
            setattr(made, name, its if mine is None else mine)


def _checked(dataset: Any) -> Any:
    if not isinstance(dataset, Dataset | Iterator):
        raise ArgumentTypeError("a Dataset or an Iterator is expected", got=repr(dataset))
    return dataset


def get_output_types(dataset_or_iterator: Any) -> Any:
    """``output_types`` of a dataset or an iterator."""
    return _checked(dataset_or_iterator).output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """``output_shapes`` of a dataset or an iterator."""
    return _checked(dataset_or_iterator).output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """``output_classes`` of a dataset or an iterator."""
    return _checked(dataset_or_iterator).output_classes


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """``dataset.make_one_shot_iterator()``."""
    made: Iterator = _checked(dataset).make_one_shot_iterator()
    return made


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """``dataset.make_initializable_iterator()``."""
    made: Iterator = _checked(dataset).make_initializable_iterator(shared_name)
    return made
