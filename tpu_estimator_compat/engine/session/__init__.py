"""The session that TF's hooks, Saver and Scaffold see: its steps run on the replicas."""
