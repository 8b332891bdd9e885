"""Discourse treebanks: file formats and supported treebanks (docs/treebanks.md)."""
