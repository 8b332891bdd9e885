"""Claims about systems, as data: measurement, claimed relation, and verdict over seeds."""
