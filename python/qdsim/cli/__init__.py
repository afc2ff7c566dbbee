"""The command line: ``qdsim COMMAND`` or ``python -m qdsim COMMAND``, a module for each command."""
