"""The reader: a page next to the report with translations and items of suites."""
