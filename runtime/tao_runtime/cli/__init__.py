"""Commands: arguments, exit code, rendering, and nothing else."""
