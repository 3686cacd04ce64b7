"""Scoring: rankings held against golden sets.

``measures`` are functions of the gains along one ranking; ``grade`` says what each hit of an item is worth;
``intervals`` how sure a mean is; ``means`` takes the means over facets; ``duplicates`` says what copies cost;
``sensitivity`` what hangs on the way of grading; ``score`` makes the tables, whose rows stand in ``rows`` and there.
"""

from pipeline.store import Stage

SCORE = Stage("score", 6)
