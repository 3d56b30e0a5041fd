"""NumPy kernels, one module per family of ops; each holds a list ``KERNELS`` that :mod:`graphdock_cpu.plugin` collects."""
