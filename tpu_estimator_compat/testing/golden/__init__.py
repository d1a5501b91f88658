"""Golden values: what the fixture `golden` compares with a file beside the test."""
