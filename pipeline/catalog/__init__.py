"""The catalogue: from the files of a tap to its entries, with nothing dropped in silence.

``frontmatter.py`` splits and parses, ``names.py`` gives names, slugs and descriptions, ``flags.py`` says what is odd
about an entry, ``entries.py`` joins them into the table of a tap. All of it is pure: bytes in, rows out.
"""
