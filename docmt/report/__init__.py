"""Report tables, figures and page from all runs' scores."""
