"""What Kanidm does instead of the early design note (`workbench/rules/entries.py`), over the same words."""
