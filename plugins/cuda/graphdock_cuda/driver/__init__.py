"""The only place that calls CUDA: what graphdock asks of it (``api``), and who answers (``cupy_driver``, ``nvrtc``, ``cublaslt``)."""
