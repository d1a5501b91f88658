"""Files of users and caches: local or remote, complete or absent."""
