"""Published models: their catalog, and import from and export to the formats of other programs."""
