"""Claims about systems, as data: measured scores, claimed comparisons, and verdicts over seeds."""
