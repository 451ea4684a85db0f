"""What pages show, as data: no widget here, and no page."""
