"""Conversion of sentences to subwords and back."""
