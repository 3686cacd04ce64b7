"""Scoring: rankings held against golden sets.

``measures`` are functions of the gains along one ranking; ``grade`` says what each hit of an item is worth;
``intervals`` how sure a mean is; ``means`` takes the means over facets; ``score`` makes the tables ``rankings``,
``items`` and ``metrics``, whose rows stand in ``rows``.
"""

from pipeline.store import Stage

SCORE = Stage("score", 1)
