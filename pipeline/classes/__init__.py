"""Content classes: which entries are the same content, told exactly.

``digests.py`` says what sameness is compared on, ``group.py`` joins the entries of a corpus into classes and tells
their mirrors, renamed mirrors and homonyms. Pure: tables in, tables out.
"""
