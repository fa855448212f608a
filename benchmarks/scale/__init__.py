"""What a memory costs as it grows: `python -m benchmarks.scale`."""
