"""Discourse treebanks: their file formats, and the treebanks that docmt reads (docs/treebanks.md)."""
