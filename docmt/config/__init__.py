"""The configuration: every stage's settings in one typed tree, and the plan of runs that follows from it."""
