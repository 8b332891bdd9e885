"""Published models: their catalog, and import from the formats of other programs."""
