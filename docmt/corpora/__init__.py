"""Corpora: the document model, the catalogue, downloads, readers and the controlled corpus."""
