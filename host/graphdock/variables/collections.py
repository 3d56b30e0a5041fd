"""Collections of a graph: standard names, and the functions that read and extend them on the default graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph, get_default_graph

if TYPE_CHECKING:
    from graphdock.variables.variable import Variable

__all__ = [
    "GraphKeys",
    "add_to_collection",
    "add_to_collections",
    "get_collection",
    "get_collection_ref",
    "global_variables",
    "local_variables",
    "model_variables",
    "moving_average_variables",
    "outermost_graph",
    "trainable_variables",
]


class GraphKeys:
    """Names of the standard collections; TensorFlow 1's."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    GLOBAL_STEP = "global_step"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"
    SUMMARIES = "summaries"
    SUMMARY_OP = "summary_op"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    CONCATENATED_VARIABLES = "concatenated_variables"
    ASSET_FILEPATHS = "asset_filepaths"
    TABLE_INITIALIZERS = "table_initializer"
    QUEUE_RUNNERS = "queue_runners"
    SAVERS = "savers"
    SAVEABLE_OBJECTS = "saveable_objects"
    TRAIN_OP = "train_op"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    EVAL_STEP = "eval_step"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"


def outermost_graph() -> Graph:
    """The default graph, or the graph around it all when that is the body of a cond or a loop: variables live there."""
    graph = get_default_graph()
    while isinstance(graph, BodyGraph):
        graph = graph.outer
    return graph


def add_to_collection(name: Any, value: Any) -> None:
    """Append ``value`` to a collection of the default graph."""
    outermost_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Append ``value`` to each of several collections of the default graph, or to one; twice to none."""
    outermost_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection; with ``scope`` only the items whose name it matches at the beginning, as a regular expression."""
    return outermost_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """The collection itself; changes to the list are changes to the collection."""
    return outermost_graph().get_collection_ref(key)


def global_variables(scope: str | None = None) -> list[Variable]:
    """Variables that sessions share and savers save, in creation order."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """Variables made with ``trainable=True``: what optimizers change, in creation order."""
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """Variables of one process, such as counters of a metric."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """The subset of variables that inference needs."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """Variables that keep moving averages."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)
