"""The `waybill` command. `main` is its entry point, `group` lists the commands, `local` is `waybill up`."""
