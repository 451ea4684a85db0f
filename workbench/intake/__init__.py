"""What was collected from servers: files, what each is and whose it is."""
