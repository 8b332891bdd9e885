"""The command line: one module per package, each with `add_commands`."""
