"""All SQL on the convert pipeline's tables, and nowhere else.

`conversions`: the rows, from upload to deletion. `details`: the columns an owner sees. `listing`: lists, changes and
counts. `results`: published files. `revisions`: what people corrected. `durations`: how long conversions take.
`retention`: what is past its age. `erasure`: forgetting somebody.

Nothing here writes or locks a row of the engine's: `waybill_engine` has functions for that. Statements that read many
rows at once join `jobs` and `job_artefacts` by their primary keys (`details`, `durations`, `results`, `retention`),
and retention asks the engine's view `job_retention`. These are the engine's tables as others may read them.
"""
