"""Judgments: how relevant a body is to a question, said by people, by exemplars and citations, or by a judge.

``qrels`` are the rows of the ledger; ``targets`` find the body that a judgment names; ``files`` read and write them as
JSON Lines and TREC; ``resolution`` makes of all rows one grade a question and class.
"""
