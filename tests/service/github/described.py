"""GitHub's own description of its API, as a judge of requests."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_ROOT = "urn:github"


class Described:
    def __init__(self, file: Path) -> None:
        self._document: dict[str, Any] = json.loads(file.read_text())
        resource = Resource.from_contents(self._document, default_specification=DRAFT202012)
        self._registry: Any = Registry().with_resource(_ROOT, resource)
        self._paths = [(_pattern(path), path) for path in self._document["paths"]]
        self._validators: dict[str, Draft202012Validator] = {}

    def problems(self, method: str, path: str, query: str, body: bytes) -> list[str]:
        """What GitHub's description says against this request; empty where it is as documented."""
        operation = self._operation(method, path)
        if operation is None:
            return [f"{method} {path} is not documented"]
        template, found = operation
        where = f"{method} {template}"
        problems = self._query_problems(where, found, query)
        described = found.get("requestBody")
        if described is None:
            return [*problems, f"{where}: takes no body"] if body else problems
        if not body:
            return [*problems, f"{where}: its body is missing"] if described.get("required") else problems
        pointer = "/".join(
            part.replace("~", "~0").replace("/", "~1")
            for part in ("", "paths", template, method.lower(), "requestBody", "content", "application/json", "schema")
        )
        errors = self._validator(pointer).iter_errors(json.loads(body))
        return [*problems, *(f"{where}: {error.json_path}: {error.message[:300]}" for error in errors)]

    def _operation(self, method: str, path: str) -> tuple[str, dict[str, Any]] | None:
        matching = [template for pattern, template in self._paths if pattern.fullmatch(path)]
        for template in sorted(matching, key=lambda each: each.count("{")):
            found = self._document["paths"][template].get(method.lower())
            if found is not None:
                return template, found
        return None

    def _query_problems(self, where: str, operation: dict[str, Any], query: str) -> list[str]:
        known = {}
        for each in operation.get("parameters", ()):
            parameter = self._resolve(each)
            if parameter["in"] == "query":
                known[parameter["name"]] = parameter["schema"]
        problems = []
        for name, text in parse_qsl(query, keep_blank_values=True):
            if name not in known:
                problems.append(f"{where}: {name} is no parameter")
                continue
            schema = self._resolve(known[name])
            value: Any = int(text) if schema.get("type") == "integer" and text.isdigit() else text
            problems += [f"{where}: {name}: {e.message}" for e in Draft202012Validator(schema).iter_errors(value)]
        return problems

    def _resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            found: Any = self._document
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            node = found
        return node

    def _validator(self, pointer: str) -> Draft202012Validator:
        if pointer not in self._validators:
            self._validators[pointer] = Draft202012Validator({"$ref": f"{_ROOT}#{pointer}"}, registry=self._registry)
        return self._validators[pointer]


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{[^}]+\}", path)
    # One segment each; GitHub's own routes take an encoded slash in one.
    return re.compile("[^/]+".join(map(re.escape, parts)))
