"""What nodes call: claim, heartbeat, bundle, report. Tokens of scope `worker` open these and nothing else."""

from typing import Annotated

from fastapi import APIRouter, Body, Header, Path, Response, status

from contract.job import Claim, Heartbeat, HeartbeatReply, Job
from contract.report import Report
from contract.text import clean
from service import leases, reports
from service.api import examples
from service.api.state import ServicesDep
from service.auth import WorkerNode
from service.database import DatabaseDep
from service.problems import ProblemError, not_found

router = APIRouter(tags=["worker"])

Lease = Annotated[str, Header(alias="X-Kernelgate-Lease", description="the lease_token of the claim", max_length=200)]


@router.post("/evaluations/{evaluation_id}/claim")
def claim(
    evaluation_id: str,
    wanted: Annotated[Claim, Body(examples=[examples.CLAIM])],
    services: ServicesDep,
    principal: WorkerNode,
) -> Job:
    """Take the lease; 409 `not-claimable` where someone has it, it has ended, or it isn't for this node."""
    with services.database.write() as session:
        job = leases.claim(
            session, principal=principal, evaluation_id=evaluation_id, wanted=wanted, settings=services.settings
        )
    if isinstance(job, ProblemError):
        raise job
    return job


@router.post("/evaluations/{evaluation_id}/heartbeat")
def heartbeat(
    evaluation_id: str,
    beat: Annotated[Heartbeat, Body(examples=[examples.HEARTBEAT])],
    lease: Lease,
    database: DatabaseDep,
    principal: WorkerNode,
) -> HeartbeatReply:
    """Keep the lease and bring progress; the answer says whether to stop."""
    with database.write() as session:
        return leases.heartbeat(session, principal=principal, evaluation_id=evaluation_id, lease=lease, beat=beat)


@router.post("/evaluations/{evaluation_id}/report", status_code=status.HTTP_204_NO_CONTENT)
def report(
    evaluation_id: str,
    result: Annotated[Report, Body(examples=[examples.REPORT])],
    lease: Lease,
    services: ServicesDep,
    principal: WorkerNode,
) -> None:
    """End the evaluation with what was found. A late or second report is refused (`lease-lost`) and changes nothing."""
    log_digest = services.store.put_log(clean(result.log)) if result.log else None
    with services.database.write() as session:
        reports.take_report(
            session,
            principal=principal,
            evaluation_id=evaluation_id,
            lease=lease,
            report=result,
            log_digest=log_digest,
        )


@router.get("/bundles/{digest}", response_class=Response)
def get_bundle(
    digest: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")], services: ServicesDep, principal: WorkerNode
) -> Response:
    """The files of a revision as a tar.gz."""
    del principal
    archive = services.store.bundle(digest)
    if archive is None:
        raise not_found("bundle", digest)
    return Response(archive, media_type="application/gzip")
