"""The public names of ``graphdock.ops`` that are written by hand, and those of them that formulas may call.

``graphdock.ops`` reads these tables at run time, opgen reads them as data, without importing anything. So each value is
a literal (``docs/reference/op-specs.md``, "Names").
"""

from __future__ import annotations

__all__ = ["ENDPOINTS", "FUNCTIONS", "HELPERS"]

#: Functions of tensors, which formulas may call: name -> ``"module:attribute"``. All are names of ``tf`` too.
FUNCTIONS: dict[str, str] = {
    "constant": "graphdock.ops.convert:constant",
    "convert_to_tensor": "graphdock.ops.convert:convert_to_tensor",
    "cast": "graphdock.ops.core:cast",
    "shape": "graphdock.ops.core:shape",
    "zeros_like": "graphdock.ops.core:zeros_like",
    "ones_like": "graphdock.ops.core:ones_like",
}

#: What else op packages build on; none of it means anything in a formula.
ENDPOINTS: dict[str, str] = {
    "apply_op": "graphdock.ops.apply:apply_op",
    "apply_op_of": "graphdock.ops.apply:apply_op_of",
    "type_of": "graphdock.ops.op_name:type_of",
    "normal_attr": "graphdock.opdef.attrs:normal_attr",
    "constant_of": "graphdock.ops.convert:constant_of",
    "register_tensor_conversion_function": "graphdock.ops.convert:register_tensor_conversion_function",
    "group": "graphdock.ops.core:group",
    "Graph": "graphdock.graph.graph:Graph",
    "get_default_graph": "graphdock.graph.graph:get_default_graph",
    "reset_default_graph": "graphdock.graph.graph:reset_default_graph",
    "Operation": "graphdock.graph.operation:Operation",
    "Tensor": "graphdock.graph.tensor:Tensor",
    "add_internal_folder": "graphdock.graph.site:add_internal_folder",
    "compile_expression": "graphdock.opdef.expression:compile_expression",
    "BodyGraph": "graphdock.graph.body:BodyGraph",
    "check_name": "graphdock.graph.scopes:check_name",
    "complete_attrs": "graphdock.graph.binding:complete",
    "control_dependencies": "graphdock.ops.core:control_dependencies",
    "name_scope": "graphdock.ops.core:name_scope",
    "device": "graphdock.ops.core:device",
    "colocate_with": "graphdock.ops.core:colocate_with",
    "init_scope": "graphdock.ops.core:init_scope",
    "ShapeRule": "graphdock.opdef.shape_rule:ShapeRule",
    "ShapeContext": "graphdock.opdef.shape_context:ShapeContext",
    "IntegerContext": "graphdock.opdef.shape_values:IntegerContext",
    "symbolic": "graphdock.opdef.shape_context:symbolic",
    "RegisterGradient": "graphdock.gradients.registry:RegisterGradient",
    "NotDifferentiable": "graphdock.gradients.registry:NotDifferentiable",
    "NoGradient": "graphdock.gradients.registry:NoGradient",
    "GradientNotFilled": "graphdock.errors:GradientNotFilled",
    "call_site": "graphdock.graph.site:call_site",
    "make_array": "graphdock.ops.convert:make_array",
    "outermost_graph": "graphdock.variables.collections:outermost_graph",
    "variable_of": "graphdock.variables.variable:variable_of",
    "variable_of_operations": "graphdock.variables.of_operations:variable_of_operations",
    "scan_loop": "graphdock.control_flow.scan_loop:scan_loop",
    "RegisterKernel": "graphdock.ops.register_kernel:RegisterKernel",
}

#: What formulas may call under a name that only they use.
HELPERS: dict[str, str] = {
    "shape_of": "graphdock.ops:shape",
}
