"""The style of entries that carry the ids of their changes, as Kanidm replicates."""
