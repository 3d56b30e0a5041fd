"""The only place that calls CUDA. ``api`` says what graphdock asks of it, the other modules answer."""
