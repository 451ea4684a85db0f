"""From findings to a plan, and from the plan to servers that are mended: proven first, done once."""
