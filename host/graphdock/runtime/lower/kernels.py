"""Lowering of nodes that a kernel computes, of host scalars, of the host's own ops and of transfers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.contracts.kernel import (
    FRESH,
    PLANNED,
    ArgInfo,
    Bound,
    BuildContext,
    In,
    KernelDef,
    Lit,
    Mode,
    Out,
    OutInfo,
    inplace,
    view,
)
from graphdock.opdef.scalar_formula import host_scalar
from graphdock.runtime.kernel_error import kernel_error
from graphdock.runtime.lower.records import Build, Setup, Slot
from graphdock.runtime.lower.variables import Variables
from graphdock.runtime.source import Block
from graphdock.runtime.spaces import SCALAR
from graphdock.runtime.storage import Root
from graphdock.runtime.variable_store import VariableState
from graphdock.shape import concrete

__all__ = ["Kernels"]


class Kernels(Variables):
    """Grants each output its mode, builds the kernel, and writes its call."""

    def kernel(self, node: PlanNode, block: Block, at: int) -> None:
        registered = self.kernels[node]
        kernel = registered.kernel
        device = self.device_of(node)
        args = arg_of(node)
        needs = self.needs(node)
        slots: list[Slot] = []
        infos: list[ArgInfo] = []
        states: list[VariableState] = []
        for i, (value, arg) in enumerate(zip(node.inputs, args, strict=True)):
            if value.dtype.name == "resource":
                state = self.touch(value, node, block, arg.mutates)
                slots.append(self.variable_slot(state))
                infos.append(ArgInfo(arg.name, state.dtype, state.dims, device.memory_space, None, True, True))
                states.append(state)
                continue
            slot = self.slot(value, needs[i])
            if kernel.layout == "contiguous" and not slot.contiguous:
                slot = self.contiguous_copy(value, slot, needs[i] or HOST_MEMORY, block, at, node)
            source = self.resolve(value).node
            known = source.attrs["value"] if source is not None and source.verb == "constant" else None
            slots.append(slot)
            infos.append(ArgInfo(arg.name, value.dtype, value.shape, needs[i] or HOST_MEMORY, known, slot.contiguous))
        modes = self.modes(node, kernel, slots, args, at)
        out_args = node.opdef.outputs
        out_names = [
            out_args[i].name if len(out_args) == len(node.outputs) else out_args[0].name for i in range(len(modes))
        ]
        ctx = BuildContext(
            node,
            tuple(infos),
            tuple(
                OutInfo(name, v.dtype, v.shape, self.home[v], mode, v in self.facts.last)
                for name, v, mode in zip(out_names, node.outputs, modes, strict=True)
            ),
            device,
            device.queue,
        )
        try:
            made = kernel.build(ctx)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
            explained = kernel_error(error, node, "could not be built")
            if explained is error:
                raise
            raise explained from error
        bound = made if isinstance(made, Bound) else Bound(made)
        self.out.first_bounds.append(bound)
        self.out.capturable = self.out.capturable and bound.capture_safe
        kname = self.name("k")
        call_inputs = [s.expr for s in slots]
        for i in bound.retains:
            call_inputs[i] = f"{self.copier(infos[i].memory_space, node.inputs[i])}({call_inputs[i]})"
        if "random" in node.opdef.effects:
            stream = self.name("r")
            self.out.streams[stream] = node
            call_inputs.append(stream)
        # a view that needs no value of the step but where its source lies is made once per instance
        viewed = {m.input for m in modes if m.kind == "view"}
        reads = range(len(infos)) if bound.args is None else [a.index for a in bound.args if isinstance(a, In)]
        once = not node.opdef.is_stateful and all(i in viewed or infos[i].value is not None for i in reads)
        out_slots = [
            self.output(v, mode, slots, kernel, name, at, block, once)
            for v, mode, name in zip(node.outputs, modes, out_names, strict=True)
        ]
        written = [s.expr for s, m in zip(out_slots, modes, strict=True) if m.kind in ("planned", "inplace")]
        scratch = []
        for item in bound.scratch:
            root = Root("planned", device.memory_space, item.dtype, item.shape, at, at, self.name("b"))
            self.out.roots.append(root)
            scratch.append(root.name)
        literals: list[tuple[str, int]] = []
        if bound.args is None:
            call = [*call_inputs, *written, *scratch]
        else:
            call = []
            for index, item_ in enumerate(bound.args):
                if isinstance(item_, In):
                    call.append(call_inputs[item_.index])
                elif isinstance(item_, Out):
                    call.append([*written, *scratch][item_.index])
                else:
                    call.append(self.literal(item_, index, literals))
        self.out.builds.append(Build(kname, node, kernel, ctx, tuple(literals)))
        returned = [s.expr for s, m in zip(out_slots, modes, strict=True) if m.kind in ("fresh", "view")]
        if modes and all(m.kind == "view" for m in modes) and all(s.static for s in out_slots):
            self.out.setups.append(Setup(tuple(returned), kname, tuple(call)))
            return
        self.activate(device, block, node)
        target = f"{', '.join(returned)} = " if returned else ""
        if states and not self.locked:
            locks = ", ".join(self.state_name(s) for s in states)
            text = f"{target}under(({locks},), {', '.join([kname, *call])})"
        else:
            text = f"{target}{kname}({', '.join(call)})"
        block.add(text, node)
        if "random" in node.opdef.effects and self.facts.depth[node]:
            block.add(f"{call_inputs[-1]}.advance()", node)
        if self.check_numerics:
            for value, slot in zip(node.outputs, out_slots, strict=True):
                if value.dtype.is_floating and self.home[value] == HOST_MEMORY:
                    block.add(f"finite({slot.expr}, {value.name!r})", node)

    def literal(self, item: Lit, index: int, literals: list[tuple[str, int]]) -> str:
        if item.value is None or type(item.value) in (bool, int):
            return repr(item.value)
        name = self.name("q")
        literals.append((name, index))
        return name

    def modes(
        self, node: PlanNode, kernel: KernelDef, slots: Sequence[Slot], args: Sequence[Any], at: int
    ) -> list[Mode]:
        names = [a.name for a in args]
        out_args = node.opdef.outputs
        outputs = node.outputs
        out_names = [
            out_args[i].name if len(out_args) == len(outputs) else out_args[0].name for i in range(len(outputs))
        ]
        if kernel.views and outputs and all(n in kernel.views for n in out_names):
            rules = [kernel.views[n] for n in out_names]
            indexes = [names.index(r.input) for r in rules]
            if all(not r.needs_contiguous or slots[i].contiguous for r, i in zip(rules, indexes, strict=True)):
                return [view(i) for i in indexes]
        if "planned" in kernel.modes and all(concrete(v.shape) is not None for v in outputs):
            result: list[Mode] = []
            taken: set[int] = set()
            for name, value in zip(out_names, outputs, strict=True):
                mode = PLANNED
                for source in kernel.inplace.get(name, ()):
                    index = names.index(source)
                    if index not in taken and self.can_take_over(node, index, value, slots, at):
                        mode = inplace(index)
                        taken.add(index)
                        break
                result.append(mode)
            return result
        return [FRESH] * len(outputs)

    def can_take_over(self, node: PlanNode, index: int, value: Value, slots: Sequence[Slot], at: int) -> bool:
        slot, source = slots[index], node.inputs[index]
        if slot.kind != "planned" or len(slot.roots) != 1 or value in self.escapes or value in self.direct:
            return False
        root = slot.roots[0]
        return (
            root.kind == "planned"
            and root.last <= at
            and slot.static
            and source.dtype is value.dtype
            and source.shape == value.shape
            and root.shape == value.shape
            and sum(s.roots == slot.roots for s in slots) == 1
        )

    def scalar(self, node: PlanNode, block: Block) -> None:
        value = node.outputs[0]
        expression = host_scalar(node.opdef, value.dtype)
        assert expression is not None
        text = expression.format(*[self.slot(v, SCALAR).expr for v in node.inputs])
        name = self.name("s")
        block.add(f"{name} = {text}", node)
        if value.dtype.name != "bool":
            bits = value.dtype.size * 8
            half = 1 << (bits - 1)
            block.add(f"if not -{half} <= {name} < {half}: {name} = wrap({name}, {bits})", node)
        self.slots[value] = Slot(name, (), True, False, "scalar")

    def host_op(self, node: PlanNode, block: Block, at: int) -> None:
        kname = self.name("k")
        self.out.builds.append(Build(kname, node, None, None))
        self.out.first_bounds.append(None)
        self.out.capturable = False
        args = []
        for value, arg in zip(node.inputs, arg_of(node), strict=True):
            if value.dtype.name == "resource":
                state = self.variable(self.handles[value], node)
                (self.out.written if arg.mutates else self.out.read).add(state)
                args.append(self.state_name(state))
            else:
                args.append(self.slot(value, HOST_MEMORY).expr)
        names = []
        for value in node.outputs:
            expr = self.name("v")
            names.append(expr)
            self.keep(
                value,
                Slot(expr, (Root("fresh", HOST_MEMORY, value.dtype, (), at, at, expr),), True, False, "fresh"),
                at,
            )
        target = f"{', '.join(names)} = " if names else ""
        block.add(f"{target}{kname}({', '.join(args)})", node)

    def transfer(self, node: PlanNode, block: Block, at: int) -> None:
        value, result = node.inputs[0], node.outputs[0]
        source, target = node.attrs["source"], node.attrs["target"]
        slot = self.slot(value, source)
        if target == SCALAR:
            expr = self.name("s")
            block.add(f"{expr} = {slot.expr}.item()", node)
            self.slots[result] = Slot(expr, (), True, False, "scalar")
            return
        if concrete(value.shape) is None:
            expr = self.name("t")
            move, other = ("push", target) if source == HOST_MEMORY else ("pull", source)
            device, dtype = self.name("o"), self.name("o")
            self.out.objects[device], self.out.objects[dtype] = self.spaces[other], value.dtype
            block.add(f"{expr} = {move}({device}, {slot.expr}, {dtype})", node)
            root = Root("fresh", target, value.dtype, (), at, at, expr)
            self.keep(result, Slot(expr, (root,), True, False, "fresh"), at)
            return
        if source == SCALAR:
            root = self.root("planned", target, result, at)
            block.add(f"{root.name}[()] = {slot.expr}", node)
            self.keep(result, Slot(root.name, (root,), True, True, "planned"), at)
            return
        if not slot.contiguous:
            slot = self.contiguous_copy(value, slot, source, block, at, node)
        other = target if source == HOST_MEMORY else source
        method = "from_host" if source == HOST_MEMORY else "to_host"
        if self.capture is not None:
            block = self.out.before if source == HOST_MEMORY else self.out.after
            for root in slot.roots:
                root.use(self.facts.final)
        self.activate(self.spaces[other], block, node)
        made = self.output(result, PLANNED, [], None, "", at, block)  # type: ignore[arg-type]
        if self.capture is not None:
            made.roots[0].first = 0
        block.add(f"{self.method(other, method)}({slot.expr}, {made.expr})", node)
