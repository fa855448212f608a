"""How soon everything answers on a large memory: `python -m benchmarks.latency -h`."""
