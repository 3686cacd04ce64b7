# /// script
# requires-python = "==3.11.*"
# dependencies = ["pyarrow==25.0.1", "rensa==0.5.0"]
# ///
"""rensa: R-MinHash over all tokens, by its call for many texts at once."""

from __future__ import annotations

from measuring import Entries, Ready, Shown, Work, main, shingles

PERMUTATIONS = 128


def matrix() -> Ready:
    """`RMinHash.digest_matrix_from_token_sets`."""
    from rensa import RMinHash

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            sets = (shingles(body) for body in entries.bodies)
            signatures = RMinHash.digest_matrix_from_token_sets(sets, PERMUTATIONS, 42)
            return lambda: signatures.len()

        return work

    return ready


if __name__ == "__main__":
    main({"matrix": matrix}, ["rensa"])
