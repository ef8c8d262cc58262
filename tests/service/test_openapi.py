import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from service.openapi import document

WRITTEN = Path(__file__).parents[2] / "web" / "openapi.json"
DOCUMENT = document()
BODIES = {
    f"{method} {path}": operation["requestBody"]["content"]["application/json"]
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
}


def test_the_document_that_clients_are_generated_from_is_current():
    written = json.loads(WRITTEN.read_text())
    assert written == json.loads(json.dumps(DOCUMENT)), "python -m service.openapi > web/openapi.json"


@pytest.mark.parametrize("operation", BODIES)
def test_every_json_body_has_an_example_that_its_schema_takes(operation):
    body = BODIES[operation]
    examples = [body["example"]] if "example" in body else body["schema"].get("examples", [])
    assert examples
    schema = Draft202012Validator({**body["schema"], "components": DOCUMENT["components"]})
    for example in examples:
        assert [error.message for error in schema.iter_errors(example)] == []
