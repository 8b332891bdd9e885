"""Readers: from the files of a format to documents."""
