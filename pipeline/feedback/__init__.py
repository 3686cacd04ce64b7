"""Failures into tests: a queue of failures and misses of users, what became of each, and promotion into a golden set.

``queue`` holds the rows of the ledger; ``promote`` makes an item of a corrected failure, in one transaction;
``readiness`` says what a set is good for.
"""

from pipeline.store import Stage

FEEDBACK = Stage("feedback", 1)
