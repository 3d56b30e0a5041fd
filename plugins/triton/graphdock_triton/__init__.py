"""Fused kernels for graphdock's CUDA device, written in Triton and compiled ahead of each step, without torch.

Nothing here imports triton before a session uses the plugin.
"""
