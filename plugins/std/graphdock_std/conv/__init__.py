"""Windows that slide over spatial dims: convolutions, pools, morphology."""
