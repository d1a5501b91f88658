"""Common parts of reports: HTML markup, formatted numbers, colors, source lines."""
