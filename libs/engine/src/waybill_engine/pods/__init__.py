"""Pods and the workers in them: what the state of a pod says about its workers, and what follows from it."""
