"""What every DAG of this folder shares: how it is tried again, how long it may take, and where its configuration is."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, Param, RetryAction, RetryRule

# An outage may be over at the next try. What else Assay reports does not mend by itself: bad input, drift, a check that
# fails. Anything that it does not report is unforeseen, such as a worker that was killed, and is tried again.
RETRY_OUTAGES_ONLY = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception="pipeline.errors.Outage", action=RetryAction.RETRY, reason="an outage"),
        RetryRule(exception="pipeline.errors.AssayError", action=RetryAction.FAIL, reason="no try mends it"),
    ]
)

# The arguments of every `@dag`; a schedule, a description and further parameters are its own.
SHARED: dict[str, Any] = {
    "start_date": datetime(2026, 1, 1),
    "catchup": False,
    "max_active_runs": 1,
    "dagrun_timeout": timedelta(hours=6),
    "default_args": {
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(hours=1),
        "retry_policy": RETRY_OUTAGES_ONLY,
        "execution_timeout": timedelta(hours=1),
    },
    "tags": ["assay"],
}


def config_param() -> Param:
    """Return the parameter by which a run names its configuration file."""
    return Param(
        os.environ.get("ASSAY_CONFIG", "config/assay.toml"),
        type="string",
        minLength=1,
        description="Configuration file; relative paths are relative to the project.",
    )
