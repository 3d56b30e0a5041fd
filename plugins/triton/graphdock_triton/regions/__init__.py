"""Region programs as Triton kernels: :mod:`layout` says how a program's space is walked, :mod:`printer` writes the kernel,
:mod:`compiler` claims regions and launches it."""
