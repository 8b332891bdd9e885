"""The controlled corpus: generated English-German documents whose right translation depends on discourse."""
