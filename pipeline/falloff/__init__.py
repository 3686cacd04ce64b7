"""Falloff: how scores fall as the catalogue around the right answers grows.

``orders`` says in what order taps join the targets, and where a curve is measured; ``kernel`` holds the machine loops;
``onepass`` ranks every subset of an order at once, with the bits of an index rebuilt for each; ``grading`` takes the
measures of those rankings; ``points`` makes means and bands of them; ``models`` fits curves and reads sizes off them;
``attribution`` names the taps and classes that took a query; ``forecast`` says what a tap would do before it is
admitted. The rows of all tables stand in ``rows``. Everything is pure and seeded: tables and arrays in, tables out.
"""
