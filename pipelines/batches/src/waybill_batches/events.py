"""What this pipeline tells the others, in the transaction in which it happened: see `waybill.changes.publish`."""

RECEIVED = "batch.received"
"""Somebody uploaded a ZIP, and it became a batch. Data: `name`."""
FINISHED = "batch.finished"
"""A batch has ended: all of its files did. Data: `name`, `status`, `files`, `complete`, `failed`, `run`."""
CHANGED = "batch.changed"
"""A batch that had ended was summed up again: somebody corrected, approved or retried one of its files. Data: those of
`batch.finished`."""
EXPIRED = "batch.expired"
"""The results of a batch are past their age, and were removed. No data."""
