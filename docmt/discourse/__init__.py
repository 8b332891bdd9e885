"""Discourse: treebanks, EDU segmentation, RST parsing, and the dependency trees that models read."""
