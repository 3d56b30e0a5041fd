"""Resources: what outlives steps. One store per container; variables are the first kind."""

from graphdock.contracts.runtime.resources.access import Access, step_name
from graphdock.contracts.runtime.resources.resource import Resource, ResourceClosed
from graphdock.contracts.runtime.resources.store import ResourceStore
from graphdock.contracts.runtime.resources.variable import Variable, unset

__all__ = ["Access", "Resource", "ResourceClosed", "ResourceStore", "Variable", "step_name", "unset"]
