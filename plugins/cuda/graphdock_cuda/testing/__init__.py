"""CUDA without a GPU, for tests: the plugin's own sources run on the CPU, behind the protocols of ``graphdock_cuda.driver.api``."""
