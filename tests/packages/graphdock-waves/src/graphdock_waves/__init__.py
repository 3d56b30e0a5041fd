"""Wave forms for graphdock."""
