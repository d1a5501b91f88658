"""Shows the reports of a preflight: as text, as JSON, and as a page."""
