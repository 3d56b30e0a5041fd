"""Common parts of the commands of graphdock and of plugins; needs click, so that no kernel imports it."""
