"""Tables are sorted by their key, and those that are so already are not copied."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.records import Record, Table


class Row(Record):
    """A row."""

    name: str
    number: int


TABLE = Table("rows", Row, ("name",))
rows = st.lists(st.builds(Row, name=st.sampled_from("abc"), number=st.integers(0, 9)), max_size=6)


@settings(deadline=None)
@given(rows)
def test_rows_of_one_key_keep_their_order(found: list[Row]) -> None:
    expected = [row.model_dump() for row in sorted(found, key=lambda row: row.name)]
    assert TABLE.from_rows(found).to_pylist() == expected


@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=3))
def test_a_table_in_parts_is_sorted_as_a_whole_one(parts: list[list[Row]]) -> None:
    tables = [pa.Table.from_pylist([row.model_dump() for row in part], schema=TABLE.schema) for part in parts]
    whole = [row for part in parts for row in part]
    assert TABLE.to_bytes(TABLE.sort(pa.concat_tables(tables))) == TABLE.to_bytes(TABLE.from_rows(whole))


def test_a_table_that_is_in_order_is_not_copied() -> None:
    table = TABLE.from_rows([Row(name="a", number=1), Row(name="b", number=0)])
    assert TABLE.sort(table) is table
