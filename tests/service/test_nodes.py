"""What the page of the nodes says of each."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlmodel import select

from contract.api import Scope
from contract.report import Environment
from service.columns import now
from service.models import Node, Project
from service.reconciler import Reconciler
from tests.service.client import CASES, case_result, node_info, report
from tests.service.test_history import evaluate


def only(api):
    [found] = api.ok("GET", "/nodes")["items"]
    return found


def heard_last(running, ago_s):
    with running.database.write() as session:
        node = session.exec(select(Node)).one()
        node.last_seen_at = now() - timedelta(seconds=ago_s)
        session.add(node)


def reconcile(running):
    services = running.services
    reconciler = Reconciler(database=running.database, dispatcher=services.dispatcher, settings=running.settings)
    reconciler.reconcile()


def test_a_node_that_measured_nothing_yet_says_so(api, node):
    node.ok("PUT", "/nodes/node-1", json=node_info(sandbox=True))
    found = only(api)
    assert found["sandbox"] is True
    assert (found["work"], found["measured_at"], found["clocks"], found["outages"]) == (None, None, {}, [])
    assert (found["spread"], found["spread_floor"]) == (None, None)


def test_a_node_says_how_far_its_processes_are_apart_and_at_what_clocks_it_measured(api, node):
    api.bring_suite()
    environment = Environment(device="a CPU", clocks={"sm_clock_mhz": 1980.0, "throttle": ""})
    evaluate(api, node, "v1", environment=environment)
    evaluation = evaluate(api, node, "v2", 1.0, environment=environment)
    found = only(api)
    assert found["clocks"] == {"sm_clock_mhz": 1980.0, "throttle": ""}
    assert found["measured_at"] == api.evaluation(evaluation)["finished_at"]
    # Pairs are spread over 0.04 %; calls of 100 us are given 0.1 % at least.
    assert found["spread"] == pytest.approx(0.0003, abs=0.0002)
    assert found["spread_floor"] == 0.001


def test_the_least_spread_is_what_the_node_itself_learnt_where_it_says_so(api, node):
    api.bring_suite()
    evaluate(api, node, "v1")
    job = node.claim(api.submit("v2")["evaluations"][0])
    node.finish(job, report(*(case_result(case, ratio=1.0, spread_floor=0.0007) for case in CASES)))
    assert only(api)["spread_floor"] == 0.0007


def test_what_a_node_has_learnt_while_idle_is_shown(api, node):
    learnt = {
        "kernel": "hgemm",
        "case": "m=1024,n=1024,k=1024",
        "time_us": 25.4,
        "bytes_a_call": 6.3e6,
        "capped": False,
        "sd": 0.0006,
        "pairs": 8,
        "measured_at": "2026-12-01T10:00:00Z",
    }
    node.ok("PUT", "/nodes/node-1", json=node_info(spreads=[learnt]))
    assert only(api)["learnt"] == [learnt]
    node.ok("PUT", "/nodes/node-1", json=node_info())
    assert only(api)["learnt"] == []


def test_what_a_node_works_on_is_named_unless_it_is_another_projects(api, node, running):
    api.bring_suite()
    evaluation = api.submit()["evaluations"][0]
    node.claim(evaluation)
    assert only(api)["work"] == {
        "evaluation": evaluation,
        "project": "local",
        "kernel": "sgemm_cpu",
        "label": "v1",
    }
    api.ok("POST", "/projects", json={"slug": "other"})
    with running.database.read() as session:
        other = session.exec(select(Project.id).where(Project.slug == "other")).one()
    stranger = only(running.api(running.token(Scope.READ, project_id=other)))
    assert (stranger["state"], stranger["work"]) == ("busy", None)


def test_a_problem_is_an_outage_until_the_node_is_well(api, node):
    for healthy, problem in ((True, None), (False, "Xid 79"), (False, "Xid 79"), (False, None), (True, None)):
        node.ok("PUT", "/nodes/node-1", json=node_info(healthy=healthy, problem=problem))
    outages = only(api)["outages"]
    assert [outage["why"] for outage in outages] == ["unhealthy, without a word why", "Xid 79"]
    assert all(outage["ended_at"] >= outage["began_at"] for outage in outages)
    node.ok("PUT", "/nodes/node-1", json=node_info(healthy=False, problem="ECC"))
    assert only(api)["outages"][0]["ended_at"] is None


def test_silence_is_one_outage_from_when_the_node_was_heard_last(api, node, running):
    node.ok("PUT", "/nodes/node-1", json=node_info())
    reconcile(running)
    assert only(api)["outages"] == []
    heard_last(running, 600)
    seen = only(api)["last_seen_at"]
    reconcile(running)
    reconcile(running)
    [outage] = only(api)["outages"]
    assert outage == {"began_at": seen, "ended_at": None, "why": "not heard of"}
    node.ok("PUT", "/nodes/node-1", json=node_info())
    [outage] = only(api)["outages"]
    assert outage["ended_at"] is not None
    reconcile(running)
    assert len(only(api)["outages"]) == 1
