"""A transaction of a stream, applied to a server exactly once: the note that it was stands in the same transaction.

A kill before the COMMIT leaves nothing, one behind it everything, and whoever comes next reads which. What servers commit by
themselves, as a CREATE TABLE, is noted before as begun and behind as done; in between the tables tell whether it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.drizzle.definitions import defined
from workbench.systems.drizzle.live.connection import DUPLICATE, Refused, Server
from workbench.systems.drizzle.live.tables import Tables
from workbench.systems.drizzle.rows import Definition, Named, Operation, RowOperation
from workbench.systems.drizzle.sql import APPLIED, CREATE_APPLIED, changes, key_text, noted, noted_done, parts


@dataclass(frozen=True)
class Applied:
    """What the server notes of a transaction: the hash of its content, and whether it is done or only begun."""

    content: str
    done: bool


@dataclass(frozen=True)
class Todo:
    """A transaction to be applied: who made it, which it is, the hash of its content, and what gives its operations."""

    origin: str
    position: str
    content: str
    operations: Callable[[], Iterable[Operation]]

    @property
    def name(self) -> str:
        """How people call it."""
        return f"transaction {self.position} of {self.origin}"


def prepare(server: Server) -> None:
    """Make the table of what was applied, if it is not there."""
    for statement in CREATE_APPLIED:
        server.run(statement)
    server.commit()


def applied_at(server: Server) -> dict[tuple[str, str], Applied]:
    """(origin, position) -> what the server notes of it."""
    if not server.rows(
        "SELECT 1 FROM information_schema.tables WHERE CONCAT(table_schema, '.', table_name) = %s", _TABLE
    ):
        return {}
    found = server.rows(f"SELECT `origin`, `position`, `content`, `done` FROM {APPLIED}")  # noqa: S608 - a constant
    server.rollback()  # a look that goes on would show what was there when it began
    return {(origin, position): Applied(content, bool(done)) for origin, position, content, done in found}


_TABLE = APPLIED.replace("`", "")


def is_done(todo: Todo, there: dict[tuple[str, str], Applied]) -> bool:
    """True if the server notes that it was applied. Raises Problem if another one of the same number was."""
    found = there.get((todo.origin, todo.position))
    if found is None:
        return False
    if found.content != todo.content:
        do = f"if the source used the number again, delete its row from {_TABLE} on the server, and resume"
        raise Problem(f"{todo.name} was applied with another content", _TABLE, do)
    return found.done


def apply_one(server: Server, todo: Todo) -> None:
    """Apply a transaction that is not done. Raises Problem, and leaves nothing of it, if a row is not as it has to be."""
    tables = Tables(server)
    try:
        definition, rows = parts(todo.operations())
        if definition is not None:
            _define(server, todo, definition)
            return
        _note(server, noted(todo.origin, todo.position, todo.content), todo)
        for change in changes(tables.checked(rows)):
            _change(server, todo, change.text, change.rows, change.about)
        server.commit()
    except BaseException:
        server.rollback()
        raise


def _note(server: Server, statement: str, todo: Todo) -> None:
    try:
        server.run(statement)
    except Refused as refused:
        if refused.number == DUPLICATE:  # somebody else applies it, or did so a moment ago
            raise Problem(f"{todo.name} is applied by somebody else", server.name, "look who, and resume") from None
        raise


def _change(server: Server, todo: Todo, statement: str, due: int, about: RowOperation) -> None:
    where = f"{server.name}, {todo.name}: {key_text(about)}"
    do = "see why it differs from its source; mend the row there and resume, or provision the replica anew"
    try:
        hit = server.run(statement)
    except Refused as refused:
        raise Problem(refused.what, where, do) from None
    if hit != due:
        raise Problem(f"{hit} rows were hit where {due} had to be: nothing of the transaction is applied", where, do)


# --- what servers commit by themselves


def _define(server: Server, todo: Todo, definition: Definition) -> None:
    statements = defined(definition)
    begun = (todo.origin, todo.position) in applied_at(server)
    as_before = _stands(server, definition) == _BEFORE[definition.kind]
    where = f"{server.name}, {todo.name}: {definition.kind} {printable(str(definition.table or ''))}".rstrip()
    if not begun:
        if not as_before and not _if_exists(definition):
            what = "what it takes away is not there" if _BEFORE[definition.kind] else "what it makes is there already"
            do = "see why the server differs from its source; mend that and resume, or skip the transaction with the reason"
            raise Problem(what, where, do)
        _note(server, noted(todo.origin, todo.position, todo.content, done=False), todo)
        server.commit()
    if not begun or as_before:
        for statement in statements:
            try:
                server.run(statement)
            except Refused as refused:
                raise Problem(refused.what, where, "mend that, and resume") from None
    server.run(noted_done(todo.origin, todo.position))
    server.commit()


_BEFORE = {
    "CREATE_SCHEMA": False,
    "CREATE_TABLE": False,
    "DROP_SCHEMA": True,
    "DROP_TABLE": True,
    "TRUNCATE_TABLE": True,
}
"""Whether what it is about is there before it is done."""


def _if_exists(definition: Definition) -> bool:
    return definition.kind == "DROP_TABLE" and definition.statement.drop_table_statement.if_exists_clause


def _stands(server: Server, definition: Definition) -> bool:
    """Whether what the statement is about is there."""
    if definition.table is not None:
        table = definition.table
        question = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
        return bool(server.rows(question, table.schema, table.table))
    statement = definition.statement
    created = statement.create_schema_statement.schema.name
    schema = created if definition.kind == "CREATE_SCHEMA" else statement.drop_schema_statement.schema_name
    return bool(server.rows("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", schema))


# --- without writing anything


def dry_run(server: Server, todos: Sequence[Todo]) -> list[str]:
    """Why these transactions could not all be applied, as far as that shows without writing: a sentence each.

    All rows are read, each as it would be run, and held against the tables that are there now. Which rows these hold is seen
    only when the transaction is applied.
    """
    found: list[str] = []
    tables, made = Tables(server), set[Named]()
    for todo in todos:
        try:
            definition, rows = parts(todo.operations())
            if definition is not None:
                defined(definition)
                made |= {definition.table} if definition.table else set()
                continue
            for _ in changes(tables.checked(rows, but=made)):
                pass
        except Problem as problem:
            found.append(f"{todo.name}: {problem}")
            break  # in the order of commits: what stands behind it waits for it
    server.rollback()
    return found
