"""Converting sentences to subwords and back."""
