# /// script
# requires-python = "==3.11.*"
# dependencies = ["gaoya==0.2.2", "pyarrow==25.0.1"]
# ///
"""gaoya: its own analyzer in Rust. It makes signatures only to insert them, so that is measured with them."""

from __future__ import annotations

from measuring import Entries, Ready, Shown, Work, main


def insert() -> Ready:
    """`MinHashStringIndex.par_bulk_insert_docs`: 16 bands of 8 rows, shingles of five words, 32 bits."""
    from gaoya.minhash import MinHashStringIndex

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            found = MinHashStringIndex(
                hash_size=32, num_bands=16, band_size=8, analyzer="word", lowercase=True, ngram_range=(5, 5)
            )
            found.par_bulk_insert_docs(list(range(len(entries.bodies))), entries.bodies)
            return found.size

        return work

    return ready


if __name__ == "__main__":
    main({"insert": insert}, ["gaoya"])
