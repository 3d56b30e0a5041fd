"""Fused kernels for the cpu device, compiled by LLVM. Nothing is imported before a session asks."""
