"""What ordered logs and vectors tell: who would send what to whom, and what a session would do with each change."""
