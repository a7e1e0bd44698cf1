"""What `python -m benchmarks` runs: a catalogue of rows, each measured in a process of its own."""
