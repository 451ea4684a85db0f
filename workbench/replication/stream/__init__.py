"""The style of transactions in segments, as Drizzle replicates."""
