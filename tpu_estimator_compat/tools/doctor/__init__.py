"""Whether an installation can be trusted: small checks, in processes of their own."""
