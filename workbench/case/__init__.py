"""A case: one incident in one folder, and what is kept, loaded and asked of it."""
