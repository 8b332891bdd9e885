"""The state of a study, from its plan and the files in its folder. Only reads, and never imports torch."""
