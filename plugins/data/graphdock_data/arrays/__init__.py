"""Arrays of tensors: a list is a value, and a write gives a new one."""
