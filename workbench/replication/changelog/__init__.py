"""The style of ordered logs of changes and vectors, as 389 Directory Server replicates."""
