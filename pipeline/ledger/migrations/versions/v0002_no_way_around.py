"""Close two ways to add to the past: a table of the same name in a session, and a later transaction in SQLite.

A migration is history: it stands for itself, and is not changed when the code is.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = ("golden_items", "concepts", "decisions", "qrels", "feedback", "feedback_events")


def upgrade() -> None:
    """Make the checks look at the ledger's own tables, and at who took the position."""
    if op.get_bind().dialect.name == "sqlite":
        for name in TABLES:
            op.execute(f"DROP TRIGGER {name}_at_the_end")
            op.execute(
                f"CREATE TRIGGER {name}_at_the_end BEFORE INSERT ON {name} WHEN NEW.position IS NOT ledger_position() "
                f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: rows are added at its end'); END"
            )
        return
    # Without this a session's own temporary table called `commits` would be asked.
    op.execute(
        "DO $$ DECLARE name text; BEGIN FOREACH name IN ARRAY "
        "ARRAY['ledger_refuse', 'ledger_next', 'ledger_at_the_end'] LOOP "
        "EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema()); END LOOP; END $$"
    )


def downgrade() -> None:
    """Refuse: what was said is never taken back."""
    raise RuntimeError("the ledger is append-only: there is no way back to before it")
