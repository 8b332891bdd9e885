"""The controlled corpus: generated English-German documents whose correct translation depends on discourse."""
