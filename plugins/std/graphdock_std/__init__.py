"""The standard op library: specs, what opgen made of them, and the public functions written by hand on top.

It enters graphdock as anyone's package would, through the hook ``register_ops``. Importing this package imports
nothing else.
"""
