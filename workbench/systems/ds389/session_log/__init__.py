"""The server's own words: its logged sessions, held against what the rules compute.

lines       the errors log as sessions: loads, control blocks, anchors, counters
played      the same session by the rules, begun from the logged control blocks
comparison  what agrees, what does not, what cannot be compared; the detector of ANCHOR_DISAGREES
"""
