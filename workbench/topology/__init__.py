"""What the evidence shows of servers: who replicates with whom, what each claims and logs, and what was known when."""
