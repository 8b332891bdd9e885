"""Instances: consecutive sentences in a document, up to a number of tokens, for training and decoding."""
