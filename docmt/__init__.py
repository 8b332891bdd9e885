"""docmt: document-level neural machine translation, from raw corpora to a results report."""

__version__ = "0.1.0"
