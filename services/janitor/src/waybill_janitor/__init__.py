"""The janitor: removes what is past its time, returns what is stuck, compares storage and rows.

`tasks` lists what it does, in order; each task is a file with a plan and a way to do one batch of it (`planning`).
`running` goes through them under a lease (`lease`) and writes down what was done; `__main__` starts it.
"""
