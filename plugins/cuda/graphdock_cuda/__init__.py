"""graphdock on NVIDIA GPUs. Import touches no driver; :mod:`graphdock_cuda.plugin` is the entry point."""
