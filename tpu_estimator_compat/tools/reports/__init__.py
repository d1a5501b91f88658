"""Common parts of reports, on a page or in a terminal: markup, figures, colors, places."""
