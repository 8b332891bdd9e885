"""Study state, from the plan and the files in the study folder. Never writes files or imports torch."""
