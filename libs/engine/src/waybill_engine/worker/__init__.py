"""The worker's runtime: claims jobs and runs them.

Follow a job through the files: `claimer` takes it, `slots` starts it, `run` runs its handler with a `JobContext`,
`completer` writes that it is done. Around them, `heartbeat` renews the lease, `listener` wakes the claimer,
`maintenance` promotes and rescues, `isolation` runs suspects of a crash alone. `worker` puts the parts together and
`program` starts it: `python -m waybill_engine.worker`.
"""
