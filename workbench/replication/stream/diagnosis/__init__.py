"""What the logs of a stream tell: which transactions a replica lacks, and what its queue and its applier do with them."""
