"""What Python and NumPy dropped: syntax and builtins of Python 2, names, methods and arguments."""
