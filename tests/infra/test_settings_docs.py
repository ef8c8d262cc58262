from pathlib import Path

import pytest
from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from contract.api import Scope
from service.settings import Settings
from tests.infra.described import tables_by_heading, type_words
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
TABLES = tables_by_heading((ROOT / "docs/operations.md").read_text())


def variable_of(name: str, field: FieldInfo) -> str:
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        alias = alias.choices[0]
    return str(alias or f"KERNELGATE_{name.upper()}")


def default_of(field: FieldInfo) -> str | None:
    """None for what is found out where it runs."""
    if field.default_factory is not None:
        return None
    value = field.default
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, tuple):
        value = " ".join(value)
    return "none" if value is None else f"`{value}`" if str(value) else "empty"


@pytest.mark.parametrize(
    ("heading", "settings"), [("Settings of the service", Settings), ("Settings of a worker", WorkerSettings)]
)
def test_every_setting_stands_in_its_table_with_type_and_default(heading, settings):
    rows = TABLES[heading]
    fields = settings.model_fields
    assert [row[0].strip("`") for row in rows] == [variable_of(name, field) for name, field in fields.items()]
    assert [row[1] for row in rows] == [type_words(field.annotation) for field in fields.values()]
    expected = {variable_of(name, field): default_of(field) for name, field in fields.items()}
    written = {row[0].strip("`"): row[2] for row in rows}
    assert {name: written[name] for name, value in expected.items() if value is not None} == {
        name: value for name, value in expected.items() if value is not None
    }
    assert all(len(row[3]) > 3 for row in rows)


def test_each_time_limit_is_shorter_than_the_next():
    worker, service = WorkerSettings(), Settings()
    limits = [
        worker.call_limit_s,
        worker.compile_limit_s,
        worker.evaluation_limit_s,
        worker.soft_limit_s,
        worker.hard_limit_s,
        service.lease_deadline_s,
    ]
    assert limits == sorted(set(limits))
    assert service.heartbeat_s < service.heartbeat_timeout_s < service.lease_deadline_s


def test_the_tokens_table_names_every_scope():
    assert [row[0].strip("`") for row in TABLES["Tokens"]] == [scope.value for scope in Scope]
