"""The ledger: its tables, and the triggers and rights by which the database refuses to change a row.

A migration is history: it stands for itself, and is not changed when the code is.
"""

from typing import NamedTuple

from alembic import op

revision = "0001"
down_revision = None

APPLICATION = "assay_application"


class Made(NamedTuple):
    """A table: its columns with their checks, and the keys that no two rows share, the primary one first."""

    name: str
    columns: str
    keys: tuple[str, ...]


TABLES = (
    Made(
        "commits",
        "position BIGINT NOT NULL CHECK (position > 0), id TEXT NOT NULL, created_at TEXT NOT NULL, what TEXT NOT NULL",
        ("position", "id"),
    ),
    Made(
        "golden_items",
        "golden_set TEXT NOT NULL, query_id TEXT NOT NULL, item_version BIGINT NOT NULL CHECK (item_version > 0), "
        "item TEXT NOT NULL",
        ("golden_set, query_id, item_version",),
    ),
    Made(
        "concepts",
        "concept_id TEXT NOT NULL, version BIGINT NOT NULL CHECK (version > 0), concept TEXT NOT NULL",
        ("concept_id, version",),
    ),
    Made(
        "decisions",
        "id TEXT NOT NULL, golden_set TEXT NOT NULL, query_id TEXT NOT NULL, decision TEXT NOT NULL, "
        "created_at TEXT NOT NULL",
        ("id",),
    ),
    Made(
        "qrels",
        "id TEXT NOT NULL, query_id TEXT NOT NULL, doc_id TEXT, chunk_id TEXT, "
        "grade BIGINT NOT NULL CHECK (grade BETWEEN 0 AND 3), "
        "source TEXT NOT NULL CHECK (source IN ('human', 'provenance', 'llm')), judge TEXT NOT NULL, "
        "judge_model TEXT, prompt_version TEXT, verdict_id TEXT, annotator TEXT, judged_sha256 TEXT NOT NULL, "
        "seq BIGINT NOT NULL CHECK (seq > 0), rationale TEXT, created_at TEXT NOT NULL, "
        "CHECK (doc_id IS NOT NULL OR chunk_id IS NOT NULL), "
        "CHECK ((source = 'human') = (annotator IS NOT NULL)), "
        "CHECK ((source = 'llm') = (judge_model IS NOT NULL)), "
        "CHECK ((source = 'llm') = (prompt_version IS NOT NULL)), "
        "CHECK (source = 'llm' OR verdict_id IS NULL)",
        ("id", "query_id, judged_sha256, source, judge, seq"),
    ),
    Made(
        "feedback",
        "id TEXT NOT NULL, key TEXT NOT NULL, source TEXT NOT NULL CHECK (source IN ('run', 'user')), run_id TEXT, "
        "golden_set TEXT, query_id TEXT, engine TEXT, failure_class TEXT NOT NULL, evidence TEXT NOT NULL, "
        "created_at TEXT NOT NULL",
        ("id", "key"),
    ),
    Made(
        "feedback_events",
        "id TEXT NOT NULL, feedback_id TEXT NOT NULL REFERENCES feedback (id), seq BIGINT NOT NULL CHECK (seq > 0), "
        "event TEXT NOT NULL CHECK (event IN ('triaged', 'corrected', 'promoted', 'rejected', 'duplicate')), "
        "by_whom TEXT NOT NULL, detail TEXT NOT NULL, created_at TEXT NOT NULL",
        ("id", "feedback_id, seq"),
    ),
)


def upgrade() -> None:
    """Make everything."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    for made in TABLES:
        primary, *others = made.keys
        position = "" if made.name == "commits" else "position BIGINT NOT NULL REFERENCES commits (position), "
        keys = "".join(f", UNIQUE ({key})" for key in others)
        # Without a row id there is no second key by which SQLite's REPLACE could push a row out.
        end = " WITHOUT ROWID" if sqlite else ""
        op.execute(f"CREATE TABLE {made.name} ({position}{made.columns}, PRIMARY KEY ({primary}){keys}){end}")
        if made.name != "commits":
            op.execute(f"CREATE INDEX {made.name}_position ON {made.name} (position)")
    op.execute("CREATE INDEX qrels_query ON qrels (query_id)")
    if sqlite:
        _guard_sqlite()
    else:
        _guard_postgresql()


def downgrade() -> None:
    """Refuse: what was said is never taken back."""
    raise RuntimeError("the ledger is append-only: there is no way back to before it")


def _guard_sqlite() -> None:
    for name, _, keys in TABLES:
        for act in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {name}_no_{act.lower()} BEFORE {act} ON {name} "
                f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: {act} of {name} is refused'); END"
            )
        # REPLACE removes the row that stands in the way, and no trigger on DELETE is asked.
        for number, key in enumerate(keys):
            same = " AND ".join(f"{column} = NEW.{column}" for column in key.split(", "))
            op.execute(
                f"CREATE TRIGGER {name}_no_replace_{number} BEFORE INSERT ON {name} "
                f"WHEN EXISTS (SELECT 1 FROM {name} WHERE {same}) "
                f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: {name} has this {key} already'); END"
            )
        last = "(SELECT coalesce(max(position), 0) FROM commits)"
        wanted = f"{last} + 1" if name == "commits" else last
        op.execute(
            f"CREATE TRIGGER {name}_at_the_end BEFORE INSERT ON {name} WHEN NEW.position IS NOT {wanted} "
            f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: rows are added at its end'); END"
        )


def _guard_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'the ledger is append-only: % of % is refused', TG_OP, TG_TABLE_NAME; END $$"
    )
    op.execute(
        "CREATE FUNCTION ledger_next() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.position <> (SELECT coalesce(max(position), 0) + 1 FROM commits) THEN "
        "RAISE EXCEPTION 'the ledger is append-only: positions have no gap'; END IF; RETURN NEW; END $$"
    )
    # The transaction that took a position is the one that may add rows there, so nothing is added to the past.
    op.execute(
        "CREATE FUNCTION ledger_at_the_end() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NOT EXISTS (SELECT 1 FROM commits WHERE position = NEW.position "
        "AND commits.xmin = pg_current_xact_id()::xid) THEN "
        "RAISE EXCEPTION 'the ledger is append-only: rows are added at its end'; END IF; RETURN NEW; END $$"
    )
    for name, _, _ in TABLES:
        op.execute(
            f"CREATE TRIGGER {name}_no_change BEFORE UPDATE OR DELETE ON {name} "
            "FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"
        )
        op.execute(
            f"CREATE TRIGGER {name}_no_truncate BEFORE TRUNCATE ON {name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
        )
        function = "ledger_next" if name == "commits" else "ledger_at_the_end"
        op.execute(
            f"CREATE TRIGGER {name}_at_the_end BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION {function}()"
        )
    # Roles belong to all databases of a server: another ledger may have made this one, perhaps at this moment.
    op.execute(
        f"DO $$ BEGIN CREATE ROLE {APPLICATION} NOLOGIN; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    )
    op.execute(
        f"DO $$ BEGIN IF NOT pg_has_role(current_user, '{APPLICATION}', 'MEMBER') THEN "
        f"EXECUTE format('GRANT {APPLICATION} TO %I', current_user); END IF; END $$"
    )
    tables = ", ".join(made.name for made in TABLES)
    op.execute(f"REVOKE ALL ON {tables}, ledger_version FROM PUBLIC, {APPLICATION}")
    op.execute(f"GRANT SELECT, INSERT ON {tables} TO {APPLICATION}")
    op.execute(f"GRANT SELECT ON ledger_version TO {APPLICATION}")
