"""Each headline figure of the project is one command: `python -m benchmarks.NAME`."""
