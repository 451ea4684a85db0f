"""Small protocols: what each style of replication has to answer, so that nothing above asks which style it is."""
