"""The configuration of a whole study, and the plan of the runs that follow from it."""
