"""Taps: git repositories read as registries, each at its pin.

``taplist.py`` reads what people write, ``git.py`` is the only module that runs git, ``profile.py`` says which paths the
catalogue may need, ``snapshot.py`` joins the three and keeps what it read.
"""
