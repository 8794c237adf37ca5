"""The janitor's tasks, one file each. `waybill_janitor.composition` puts them in order."""
