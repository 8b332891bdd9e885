"""Decoding: beam search over whole documents and scoring of given targets."""
