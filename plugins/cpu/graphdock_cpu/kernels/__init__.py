"""NumPy kernels, one module per family; each holds ``KERNELS``, a list that :mod:`graphdock_cpu.plugin` collects."""
