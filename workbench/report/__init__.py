"""The report of an incident: what it says (`contents`), without names (`redaction`), and how it is shown or packed."""
