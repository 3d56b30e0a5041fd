"""Storage: record framing, checkpoints and event files."""
