"""The command line, ``python -m pdprivacy``: a module per tool, and `main`, which picks one."""
