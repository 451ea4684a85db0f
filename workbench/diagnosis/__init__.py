"""From evidence to findings: who replicates with whom, what each server misses, and why."""
