"""Assay: nightly measurement of retrieval over registries of agent skills.

Read ``stages.py`` first: one short function a step, in the order of the night. The folders are the nouns of the
product in the order that data flows: ``taps`` (git, pins) → ``catalog`` (entries) → ``classes`` (content classes) →
``engines`` (ranking) → ``golden`` (questions and what answers them) → ``scoring`` (measures) → ``falloff`` (scores
against size) → ``reports`` (feed, charts, page). ``store.py`` keeps what was derived, ``tables.py`` lists what is
published.
"""

__version__ = "0.1.0"
