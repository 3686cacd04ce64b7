# /// script
# requires-python = "==3.11.*"
# dependencies = ["daft==0.7.26", "packaging==26.4", "pyarrow==25.0.1", "tqdm==4.67.3", "typing-extensions==4.16.0"]
# ///
"""daft: the expression `minhash` over a column of texts in lower case."""

from __future__ import annotations

from measuring import Entries, Ready, Shown, Work, main


def expression() -> Ready:
    """128 hashes over runs of five tokens, by xxhash."""
    import daft

    def ready(entries: Entries) -> Work:
        frame = daft.from_arrow(entries.table.select(["body"])).collect()

        def work() -> Shown:
            words = frame["body"].lower()
            made = frame.select(words.minhash(num_hashes=128, ngram_size=5, hash_function="xxhash64")).collect()
            return lambda: made.count_rows()

        return work

    return ready


if __name__ == "__main__":
    main({"expression": expression}, ["daft"])
