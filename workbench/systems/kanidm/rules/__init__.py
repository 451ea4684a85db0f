"""What Kanidm does instead of the early design note (`workbench/replication/entry/rules/entries.py`), over the same words."""
