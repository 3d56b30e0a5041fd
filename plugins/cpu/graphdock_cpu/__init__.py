"""The ``cpu`` plugin: NumPy kernels for every op, and the device they run on. The readable definition of what each op
computes.

Importing this package imports nothing else; :mod:`graphdock_cpu.plugin` is what the entry point names.
"""
