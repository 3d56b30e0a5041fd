"""Variable scopes, get_variable, partitions and templates."""

ENDPOINTS = {
    "get_variable": "graphdock_tf1.variables.get_variable:get_variable",
    "get_local_variable": "graphdock_tf1.variables.get_variable:get_local_variable",
    "PartitionedVariable": "graphdock_tf1.variables.partitioned:PartitionedVariable",
    "fixed_size_partitioner": "graphdock_tf1.variables.partitioned:fixed_size_partitioner",
    "min_max_variable_partitioner": "graphdock_tf1.variables.partitioned:min_max_variable_partitioner",
    "variable_axis_size_partitioner": "graphdock_tf1.variables.partitioned:variable_axis_size_partitioner",
    "get_variable_scope": "graphdock_tf1.variables.scope:get_variable_scope",
    "variable_scope": "graphdock_tf1.variables.scope:variable_scope",
    "VariableScope": "graphdock_tf1.variables.scope:VariableScope",
    "make_template": "graphdock_tf1.variables.template:make_template",
    "AUTO_REUSE": "graphdock_tf1.variables.scope:AUTO_REUSE",
    "ops.set_initial_value": "graphdock_tf1.variables.stored:set_initial_value",
    "ops.stored_variables": "graphdock_tf1.variables.stored:stored_variables",
    "ops.variable_from_proto": "graphdock_tf1.variables.variable_def:from_proto",
    "ops.variable_to_proto": "graphdock_tf1.variables.variable_def:to_proto",
}
