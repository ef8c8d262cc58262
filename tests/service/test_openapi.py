import json
from pathlib import Path

from service.openapi import document

WRITTEN = Path(__file__).parents[2] / "web" / "openapi.json"


def test_the_document_that_clients_are_generated_from_is_current():
    written = json.loads(WRITTEN.read_text())
    assert written == json.loads(json.dumps(document())), "python -m service.openapi > web/openapi.json"
