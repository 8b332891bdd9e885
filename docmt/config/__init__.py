"""Configuration of a study, and the plan of its runs."""
