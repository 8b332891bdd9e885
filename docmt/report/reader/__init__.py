"""Reader: a page next to the report with translations and suite items."""
