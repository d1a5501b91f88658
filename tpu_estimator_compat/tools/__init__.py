"""Commands and what they do."""
