"""Choices of the planner that cost time to make: devices by simulation."""
