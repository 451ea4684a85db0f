"""The styles of replication: one package for each, with the same rooms in all of them.

changelog  ordered logs of changes and vectors: a supplier sends in sessions what its consumer has not seen
entry      entries that carry the ids of their changes, and the ranges of ids that servers claim
stream     transactions in segments, which a source writes and its appliers do in the order of commits
tier       a physical log, pulled along a tree of nodes

A system is a folder that picks a style (`workbench.systems`); what all styles share stands in `workbench.rules`.
"""
