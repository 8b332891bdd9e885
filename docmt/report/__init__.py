"""Tables, pictures and one page from the scores of all runs."""
