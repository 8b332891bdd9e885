"""Instances: whole sentences of one document, up to a number of tokens; the unit of training and decoding."""
