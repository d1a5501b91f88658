"""Legacy models of different kinds, as authors of 2018 wrote them; `run.py` trains one."""
