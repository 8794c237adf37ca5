"""The janitor: removes what is past its age, returns what is stuck, compares storage and rows.

`composition` lists what it does, in order, from what the engine and the installed pipelines bring; `tasks` has a file
for each kind of task. `run` goes through them under a lease (`lease`) and records what was done; `__main__` starts it.
"""
