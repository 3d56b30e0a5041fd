"""The plugin: its names are found by the manifest; it needs no hook."""
