"""Notebooks without a person: a file of parameters becomes runs, each run a folder in its case, and runs are compared.

orders.py     a parameters file -> what is to be run, checked before anything starts
running.py    one run: papermill in a process of its own, published whole, done only with a completion record
facts.py      what a run found, without prose and times: what is compared
"""
