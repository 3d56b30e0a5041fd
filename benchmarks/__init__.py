"""Speed, always as a ratio: graphdock beside its peers, interleaved in one run. See `benchmarks/README.md`."""
