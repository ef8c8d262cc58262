from tests.service.client import Api


def test_the_service_is_alive_and_ready_and_says_whether_the_broker_is(api: Api, running, publisher) -> None:
    root = running.url
    assert api.http.get(f"{root}/healthz").json() == {"status": "ok"}
    assert api.http.get(f"{root}/readyz").json() == {"database": "ok", "broker": "ok"}
    publisher.down = True
    response = api.http.get(f"{root}/readyz")
    assert response.status_code == 200
    assert response.json()["broker"] == "unreachable"
