"""The design documents made executable: pure functions, no files, no engine, the standard library only.

A rule never knows who asks it: an exact replay in a notebook, or a pass over a hundred million changes in Spark.
"""
