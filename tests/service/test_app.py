import json
import re

from tests.service.client import Api


def test_the_service_is_alive_and_ready_and_says_whether_the_broker_is(api: Api, running, publisher) -> None:
    root = running.url
    assert api.http.get(f"{root}/healthz").json() == {"status": "ok"}
    assert api.http.get(f"{root}/readyz").json() == {"database": "ok", "broker": "ok"}
    publisher.down = True
    response = api.http.get(f"{root}/readyz")
    assert response.status_code == 200
    assert response.json()["broker"] == "unreachable"


def test_the_openapi_document_holds_together_and_shows_examples(running) -> None:
    document = running.api().http.get("/openapi.json").json()
    text = json.dumps(document)
    references = set(re.findall(r'"\$ref": "([^"]+)"', text))
    assert references
    for reference in references:
        part = document
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body and not path.endswith("/imports"):
                assert "example" in json.dumps(body), f"{method} {path}"


def test_a_path_or_a_method_that_does_not_exist_is_a_problem(running) -> None:
    nobody = running.api()
    assert nobody.problem("GET", "/nothing")["type"] == "not-found"
    assert nobody.problem("PATCH", "/projects")["type"] == "method-not-allowed"
