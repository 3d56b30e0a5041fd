"""Random numbers: draws, seeds, distributions with parameters."""
