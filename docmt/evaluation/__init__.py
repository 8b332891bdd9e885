"""Scores of translations and of contrastive test sets."""
