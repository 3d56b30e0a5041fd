"""Other frameworks as oracles. What stands here needs one of them (``pip install torch``), which graphdock itself never does."""
