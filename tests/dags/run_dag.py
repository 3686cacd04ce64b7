"""Run a DAG once, as its file says but with short waits, and print how each task ended. Used by the tests."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

from pipeline.orchestration import load_dag, prepare_airflow


def main() -> None:
    """Take the Airflow home, the configuration, the most retries of a task, the DAG, and parameters as JSON."""
    home, config, retries, name = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    params = json.loads(sys.argv[5])
    prepare_airflow(home)
    dag = load_dag(name)
    for task in dag.tasks:
        task.retries = min(task.retries or 0, retries)
        task.retry_delay = timedelta(seconds=1)
        task.max_retry_delay = timedelta(seconds=2)
    sys.stdout.flush()
    shown = os.dup(1)
    os.dup2(2, 1)
    run = dag.test(logical_date=None, run_conf={"config": config, **params})
    ended = [
        {
            "task": instance.task_id,
            "label": instance.rendered_map_index,
            "state": str(instance.state),
            "tries": instance.try_number,
        }
        for instance in run.get_task_instances()
    ]
    with os.fdopen(shown, "w") as out:
        json.dump({"state": str(run.state), "tasks": ended}, out)


if __name__ == "__main__":
    main()
