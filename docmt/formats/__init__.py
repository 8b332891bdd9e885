"""Files that people translate: what is text in them, what must come back unchanged, and how translations go in."""
