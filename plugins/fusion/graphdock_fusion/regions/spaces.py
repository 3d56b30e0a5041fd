"""Nodes that can be in one region program: those of one device that lie in one space."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from graphdock.contracts.ir import PlanNode, Value
from graphdock.device_name import DeviceSpec
from graphdock.shape import Symbol

from graphdock_fusion.regions.forms import Form, form_of
from graphdock_fusion.regions.lowering import Variables, where_made
from graphdock_fusion.regions.placing import Dims, Space, local_shape
from graphdock_fusion.regions.typed import NotInRegion, Unknown

__all__ = ["BySpace"]

#: A device, and the space that its nodes lie in.
Kind: TypeAlias = "tuple[DeviceSpec, Space]"


class BySpace:
    """Kinds of groups for :func:`graphdock_fusion.regions.groups.form_fusion_groups`: a device and a space.

    A node lies in the space of its own shape, or in that of a node before it, if what it reads is a reduction of that space: the
    square root of a variance belongs to the region that the variance was computed in.

    Attributes:
      variables: handle -> dtype and dims of its variable, where updates may be in a region.
      products: whether ops that name their space may.
      reductions: whether one that reduces, or reads more than two tensors, may be alone.
      steps: whether any node may be alone, because the groups become parts of a loop.
      unknown_dims: whether a space may have axes of unknown extent.
      gathers: whether rows may be read where indices say.
      single: elementwise nodes that may be alone all the same.
      rematerializable: nodes that belong to every group that reads them (:mod:`graphdock_fusion.regions.rematerializable`).
      reasons: node -> why it is in no region. ``unknown``: those of them whose dims are to blame.
    """

    def __init__(
        self,
        device_of: Callable[[PlanNode], DeviceSpec | None],
        variables: Variables | None = None,
        products: bool = False,
        reductions: bool = False,
        steps: bool = False,
        unknown_dims: bool = False,
        gathers: bool = False,
    ) -> None:
        self._device_of = device_of
        self._variables = variables
        self._products = products
        self._reductions = reductions
        self.steps = steps
        self._unknown_dims = unknown_dims
        self._gathers = gathers
        self._kind: dict[PlanNode, Kind] = {}
        self._dims: dict[Value, Dims] = {}
        self.single: set[PlanNode] = set()
        self.rematerializable: set[PlanNode] = set()
        self.reasons: dict[PlanNode, str] = {}
        self.unknown: dict[PlanNode, None] = {}

    def own(self, node: PlanNode) -> Kind | None:
        """Device and space of a node by itself, if it has more than one element; None where it can be in no region."""
        device, form = self._device_of(node), self._form(node)
        if device is None or form is None:
            return None
        try:
            space = self._space(node, form)
            where_made(node, form, space, {}, self._variables or {})
        except NotInRegion:
            return None
        return (device, space) if space else None

    def _form(self, node: PlanNode) -> Form | None:
        form = form_of(node.opdef)
        if form is None or form.writes and self._variables is None or form.space and not self._products:
            return None
        if form.gathers and not self._gathers:
            return None
        return form

    def alone(self, node: PlanNode) -> bool:
        form = form_of(node.opdef)
        # of more than two tensors a kernel of NumPy's reads again what it has made
        dear = form is not None and self._reductions and (form.reduces or len(node.inputs) > 2)
        return form is not None and bool(self.steps or form.writes or form.space or dear or node in self.single)

    def options(self, node: PlanNode, before: Sequence[PlanNode]) -> Sequence[Hashable]:
        device, form = self._device_of(node), self._form(node)
        if device is None or form is None:
            return ()
        try:
            own: Kind = (device, self._space(node, form))
        except NotInRegion as refused:
            self._refused(node, refused)
            return ()
        found = {self._kind[n] for n in before if n in self._kind}
        wider = sorted((k for k in found if k[0] == device and len(k[1]) > len(own[1])), key=lambda k: -len(k[1]))
        return (own, *wider)

    def settle(self, node: PlanNode, kind: Hashable, joined: Sequence[PlanNode]) -> bool:
        form = form_of(node.opdef)
        assert form is not None and isinstance(kind, tuple)
        inside = {v: self._dims[v] for n in joined for v in n.outputs if v in self._dims}
        try:
            made = where_made(node, form, kind[1], inside, self._variables or {})
        except NotInRegion as refused:
            self._refused(node, refused)
            return False
        self._kind[node] = kind
        self._dims.update(zip(node.outputs, made, strict=True))
        self.reasons.pop(node, None)
        self.unknown.pop(node, None)
        return True

    def _space(self, node: PlanNode, form: Form) -> Space:
        """The space of a node's own shape."""
        shape = local_shape(node, form)
        if not self._unknown_dims and any(isinstance(d, Symbol) for d in shape):
            raise Unknown("dims are not known, and it does not say unknown_dims")
        return tuple(d for d in shape if d != 1)

    def _refused(self, node: PlanNode, refused: NotInRegion) -> None:
        self.reasons[node] = str(refused)
        if isinstance(refused, Unknown) or any(
            v.shape is not None and 0 in v.shape for v in (*node.inputs, *node.outputs)
        ):
            self.unknown[node] = None
