"""A DAG for Airflow 3 that checks the cases of nightly.yaml every night; put it into Airflow's folder of DAGs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

COMMAND = (
    "cd /opt/workbench && .venv/bin/workbench check /etc/workbench/nightly.yaml --junit /var/lib/workbench/nightly.xml"
)

with DAG(
    "workbench_check",
    schedule="15 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what was missed is not made up for: one check says how things are now
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=6),
    tags=["replication"],
) as dag:
    # No retries: a run that failed is told at once, and a finding does not go away by asking again.
    BashOperator(
        task_id="check",
        bash_command=COMMAND,
        env={"STATE_DIRECTORY": "/var/lib/workbench"},  # made once: install -d -o workbench -m 750 /var/lib/workbench
        append_env=True,
        retries=0,
    )
