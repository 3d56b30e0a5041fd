"""Time of steps, and where it goes: profiles of traced steps, as tables and as traces for Perfetto."""

from graphdock_profiler.profile import Held, Profile, Row, profile

__all__ = ["Held", "Profile", "Row", "profile"]
