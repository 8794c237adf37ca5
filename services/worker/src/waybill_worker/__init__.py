"""The worker: claims jobs and runs them.

Follow a job through the files: `claiming` takes it, `bench` holds it, `running` runs its handler with a `context`,
`completing` writes that it is done. Around it: `heartbeat` holds the lease, `listening` wakes the claimer, `upkeep`
promotes, rescues and isolates. `worker` puts them together; `__main__` starts it.
"""
