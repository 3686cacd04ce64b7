# /// script
# requires-python = "==3.11.*"
# dependencies = ["datasketch==2.0.0", "numpy==2.4.6", "pyarrow==25.0.1", "scipy==1.17.1", "xxhash==4.1.0"]
# ///
"""datasketch: MinHash with 128 permutations, as most programs call it and as it is fastest; and MinHashLSH."""

from __future__ import annotations

from measuring import Entries, Ready, Shown, Work, distinct, main, shingles

PERMUTATIONS = 128
BANDS, ROWS = 16, 8


def update() -> Ready:
    """`MinHash.update`, a shingle at a time, with its own hash function."""
    from datasketch import MinHash

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            signatures = []
            for body in entries.bodies:
                signature = MinHash(num_perm=PERMUTATIONS)
                for shingle in shingles(body):
                    signature.update(shingle.encode())
                signatures.append(signature)
            return lambda: len(signatures)

        return work

    return ready


def bulk() -> Ready:
    """`MinHash.bulk` with xxhash: the permutations are drawn once, and each text is one batch."""
    import xxhash
    from datasketch import MinHash

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            sets = ([shingle.encode() for shingle in shingles(body)] for body in entries.bodies)
            signatures = MinHash.bulk(sets, num_perm=PERMUTATIONS, hashfunc=xxhash.xxh32_intdigest)
            return lambda: len(signatures)

        return work

    return ready


def lsh() -> Ready:
    """`MinHashLSH` over signatures that are there: every body inserted, then asked for."""
    import xxhash
    from datasketch import MinHash, MinHashLSH

    def ready(entries: Entries) -> Work:
        sets = ([shingle.encode() for shingle in shingles(body)] for body in distinct(entries.bodies))
        signatures = MinHash.bulk(sets, num_perm=PERMUTATIONS, hashfunc=xxhash.xxh32_intdigest)

        def work() -> Shown:
            buckets = MinHashLSH(num_perm=PERMUTATIONS, params=(BANDS, ROWS))
            with buckets.insertion_session() as session:
                for number, signature in enumerate(signatures):
                    session.insert(number, signature)
            pairs = [(number, other) for number, each in enumerate(signatures) for other in buckets.query(each)]
            return lambda: sum(number < other for number, other in pairs)

        return work

    return ready


if __name__ == "__main__":
    main({"update": update, "bulk": bulk, "lsh": lsh}, ["datasketch", "xxhash", "numpy"])
