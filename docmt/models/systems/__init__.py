"""The Transformer of all systems, and one file per system that adds a module to it."""
