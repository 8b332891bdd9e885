"""Scores for translations and contrastive test sets."""
