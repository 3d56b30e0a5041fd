"""A pass in each phase of planning."""
