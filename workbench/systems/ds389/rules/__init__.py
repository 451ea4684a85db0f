"""What 389 Directory Server really does, where the design documents say something else or nothing: pure functions."""
