"""Models over packed tokens, all built on one primitive: ragged attention."""
