"""TensorFlow-1 programs as they stand: ``import tensorflow`` is answered by graphdock, in one process and its children.

``twins`` says which public names a module of TensorFlow stands for, ``finder`` answers imports, ``uses`` remembers what was asked
for in vain, ``shims`` brings back names that NumPy and SciPy dropped, ``steps`` stops, explains or profiles, ``command`` is
``graphdock run``.
"""
