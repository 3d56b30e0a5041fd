"""Resources: what outlives steps. One store per container; variables are the first kind."""

from graphdock.runtime.resources.access import Access, step_name
from graphdock.runtime.resources.resource import Resource, ResourceClosed
from graphdock.runtime.resources.store import ResourceStore
from graphdock.runtime.resources.variable import Variable, unset

__all__ = ["Access", "Resource", "ResourceClosed", "ResourceStore", "Variable", "step_name", "unset"]
