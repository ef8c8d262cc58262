import pytest, time
from tests.service.test_imports import HEADER, bring
from sqlalchemy import text, event
def test_explain(api, running):
    if "postgres" not in running.settings.database_url: pytest.skip("x")
    rows = "".join(f"long,h200,r{p},{f'r{p - 1}' if p else ''},c1,time,{100 + p % 7},us,\n" for p in range(1000))
    bring(api, HEADER + rows)
    got=[]
    @event.listens_for(running.database.engine,"before_cursor_execute")
    def f(conn,cur,st,par,ctx,many): got.append((st,par))
    t=time.perf_counter()
    api.ok("GET","/projects/local/kernels/long/history",params={"device_class":"h200","case":"c1","metric":"time"})
    print("TOOK",time.perf_counter()-t)
    st,par=max(got,key=lambda x:len(x[0]))
    event.remove(running.database.engine,"before_cursor_execute",f)
    with running.database.engine.connect() as c:
        raw=c.connection.cursor(); raw.execute("EXPLAIN ANALYZE "+st,par)
        print("\n".join(r[0] for r in raw.fetchall()))
    assert 0
