"""How Alembic runs the migrations of the ledger: over the connection, and in the transaction, that it is handed."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection, version_table=context.config.attributes["version_table"], transactional_ddl=True)
context.run_migrations()
