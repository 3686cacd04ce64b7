"""Golden sets: questions and what answers them.

``items`` reads a file of rows strictly and freezes it under a digest; ``resolve`` finds what each row names in a
corpus, or says which rows name nothing there; ``kept`` gives what the ledger keeps the form of a file.
"""
