"""Fourier and cosine transforms, frames and windows."""
