"""Study configuration and the plan of runs."""
