"""Notebooks: their cells as Python for the tools, `run x.ipynb` by IPython, and `install()`."""
