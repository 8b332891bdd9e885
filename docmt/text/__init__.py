"""From sentences to subwords and back."""
