"""What the states of entries tell of servers that keep no log: who lacks what, who refuses whom, what is forgotten when."""
