"""The `waybill` command. `main` is its entry, `group` lists what it can do; `local` is `waybill up`."""
