"""Discourse: treebanks, EDU segmentation, RST parsing, and dependency trees for models."""
