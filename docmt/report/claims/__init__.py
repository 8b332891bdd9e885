"""Claims about systems, as data: what is measured, which relation is claimed, and the verdict over seeds."""
