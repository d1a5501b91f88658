"""Runs a script with two steps of each training, and its folders in a temporary one."""
