"""Notebooks without a person: a file of parameters becomes runs, each run a folder in its case, and runs are compared.

config_values.py      a value as it is written and meant, a file that a person wrote; or what is wrong with it
run_config.py         a parameters file -> what is to be run, checked before anything starts
running.py            one run: papermill in a process of its own, published whole, done only with a completion record
papermill_process.py  that process
facts.py              what a run found, without prose and times: what is compared
fact_diff.py          the facts of two runs held against each other
regression_check.py   the runs of a file held against what was accepted (FILE.baseline.json), and against the runs before
baseline_check.py     a case held against what is expected of it, as the notebook 50_checks and the command do
case_facts.py         what is known of a case as rows, without prose and times
check_output.py       checked runs as text, JSON and JUnit XML
notification_state.py which of that people do not know yet
notifications.py      who is told, by a webhook or by mail
"""
