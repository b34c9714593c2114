"""The cluster that all tests of a run share; set by `run`."""
cluster = None
