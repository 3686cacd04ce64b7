"""One definition for each noun: a record class gives the Arrow schema, the JSON Schema and the docs of its columns."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import pyarrow as pa


class Record(BaseModel):
    """What crosses a file, a process or the network: frozen, unknown fields refused, each field documented."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


@dataclass(frozen=True)
class Table:
    """A published table: its name, the record that is a row, the columns that sort it, and its version."""

    name: str
    record: type[Record]
    key: tuple[str, ...]
    version: int = 1

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the description of each column in its metadata."""
        import pyarrow as pa

        fields = [
            pa.field(
                name,
                _arrow_type(field.annotation),
                nullable=_is_optional(field.annotation),
                metadata={"description": field.description or ""},
            )
            for name, field in self.record.model_fields.items()
        ]
        return pa.schema(fields, metadata={"table": self.name, "version": str(self.version)})

    def from_rows(self, rows: Iterable[Record]) -> pa.Table:
        """Build the table from records, sorted by its key."""
        import pyarrow as pa

        return self.sort(pa.Table.from_pylist([row.model_dump() for row in rows], schema=self.schema))

    def from_columns(self, columns: Mapping[str, Sequence[object] | pa.Array]) -> pa.Table:
        """Build the table from its columns, sorted by its key."""
        import pyarrow as pa

        return self.sort(pa.Table.from_pydict(dict(columns), schema=self.schema))

    def sort(self, table: pa.Table) -> pa.Table:
        """Return ``table`` ordered by the key: bytes and text by their bytes, nulls last."""
        import pyarrow.compute as pc

        order = pc.sort_indices(table, sort_keys=[(column, "ascending") for column in self.key])
        in_order = all(column.num_chunks == 1 for column in table.columns) and pc.all(_ascends(order)).as_py()
        return table if in_order else table.take(order)  # a copy of all text that is saved where it can be

    def to_bytes(self, table: pa.Table) -> bytes:
        """Encode ``table`` as Parquet (zstd). The same rows give the same bytes."""
        return parquet_bytes(table.cast(self.schema) if table.schema != self.schema else table)


def _ascends(order: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.less(order.slice(0, max(len(order) - 1, 0)), order.slice(1))


def parquet_bytes(table: pa.Table) -> bytes:
    """Encode ``table`` as Parquet (zstd); the same table gives the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=1, version="2.6")
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _arrow_type(annotation: Any) -> pa.DataType:
    import pyarrow as pa

    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
    if annotation in plain:
        return plain[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return _arrow_type(inner)
    if origin is Literal:
        return pa.string()
    if origin in (tuple, list):
        return pa.list_(_arrow_type(arguments[0]))
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return pa.struct(
            [pa.field(name, _arrow_type(field.annotation)) for name, field in annotation.model_fields.items()]
        )
    raise TypeError(f"no Arrow type for {annotation!r}")
