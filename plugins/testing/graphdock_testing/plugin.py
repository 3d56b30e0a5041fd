"""The plugin: its names are found by the manifest, its options of pytest by an entry point of pytest; it needs no hook."""
