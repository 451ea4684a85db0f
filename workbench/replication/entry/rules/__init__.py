"""What this style alone does: pure functions, the standard library only (see `workbench.rules`)."""
