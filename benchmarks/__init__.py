"""Side by side with the peers: each contender in a process and an environment of its own, on the same input.

``inputs.py`` prepares what all of them read; ``contests.py`` lists who does what; ``running.py`` runs them in turn and
``tables.py`` sums up. ``contenders/`` holds one program a library; its first lines say what it needs, and no more than
that is installed for it. Run by ``make bench``.
"""
