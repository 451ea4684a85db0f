"""The style of a physical log that is pulled along a tree of nodes, as Comdb2 replicates."""
