"""What 389 Directory Server does, as pure functions: standard library only, no files, no engine.

What holds for every system is in `workbench.rules`; here is what knows a CSN, an nsds50ruv value, a result code.
"""
