"""Corpora: the document model, the catalog, downloads and readers."""
