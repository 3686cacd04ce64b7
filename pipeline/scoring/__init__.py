"""Scoring: rankings held against golden sets.

``measures`` are functions of the gains along one ranking; ``grade`` says what each hit of an item is worth;
``intervals`` how sure a mean is; ``means`` takes the means over facets; ``duplicates`` says what copies cost;
``sensitivity`` what hangs on the way of grading; ``score`` makes the tables, whose rows stand in ``rows`` and there.
"""

from typing import Literal

from pipeline.store import Stage

SCORE = Stage("score", 8)

Signal = Literal["top_score", "reached", "gap"]
"""What tells whether to answer: see `pipeline.scoring.signals`."""
DECIDING: Signal = "top_score"
"""The signal by which an item counts as answered, unless the configuration says otherwise."""
