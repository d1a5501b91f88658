"""n steps in one call on the devices."""
