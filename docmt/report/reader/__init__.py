"""The reader: a page beside the report in which one reads translations and items of suites."""
