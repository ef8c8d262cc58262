"""States, outcomes, verdicts and reasons, and the one place that knows a state's successors."""

from enum import StrEnum


class State(StrEnum):
    QUEUED = "queued"
    LEASED = "leased"
    FINISHED = "finished"
    CANCELLED = "cancelled"


SUCCESSORS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.LEASED, State.FINISHED, State.CANCELLED}),
    State.LEASED: frozenset({State.QUEUED, State.FINISHED, State.CANCELLED}),
    State.FINISHED: frozenset(),
    State.CANCELLED: frozenset(),
}


class Stage(StrEnum):
    """What an attempt does, in this order."""

    FETCH = "fetch"
    BUILD = "build"
    RECORD = "record"
    INSPECT = "inspect"
    VERIFY = "verify"
    MEASURE = "measure"
    SANITIZE = "sanitize"
    PROFILE = "profile"
    REPORT = "report"


class Outcome(StrEnum):
    PASSED = "passed"
    BUILT = "built"
    SLOWER = "slower"
    INCORRECT = "incorrect"
    BUILD_FAILED = "build_failed"
    UNTRUSTED = "untrusted"
    INCONCLUSIVE = "inconclusive"
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    CANCELLED = "cancelled"


class Verdict(StrEnum):
    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"


class Reason(StrEnum):
    """Why an evaluation did not pass. Stable: clients and history depend on the spelling."""

    COMPILE_ERROR = "compile_error"
    COMPILE_TIMED_OUT = "compile_timed_out"
    ENTRY_MISSING = "entry_missing"
    FLAG_NOT_ALLOWED = "flag_not_allowed"
    NOT_RECORDABLE = "not_recordable"
    NOT_RELOCATABLE = "not_relocatable"
    ARCHITECTURE_UNSUPPORTED = "architecture_unsupported"

    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    RETURNED_ERROR = "returned_error"
    WRONG_VALUES = "wrong_values"
    NAN_VALUES = "nan_values"
    OUT_OF_BOUNDS_WRITE = "out_of_bounds_write"
    INPUT_MODIFIED = "input_modified"
    SANITIZER_FINDING = "sanitizer_finding"
    CASE_REFUSED = "case_refused"

    CLOCKS_DISAGREE = "clocks_disagree"
    FASTER_THAN_ROOFLINE = "faster_than_roofline"
    UNTOUCHED_SLOT_WRITTEN = "untouched_slot_written"
    LEFT_RUNNING = "left_running"
    CALLS_OVERLAP = "calls_overlap"

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    DEADLINE_PASSED = "deadline_passed"
    TOOLCHAIN_MISSING = "toolchain_missing"
    SANDBOX_MISSING = "sandbox_missing"
    OPERATOR_REFUSED = "operator_refused"
    OPERATOR_FAILED = "operator_failed"
    DEVICE_UNHEALTHY = "device_unhealthy"
    BASELINE_FAILED = "baseline_failed"
    BASE_FAILED = "base_failed"
    OUT_OF_MEMORY = "out_of_memory"
    INTERNAL_ERROR = "internal_error"

    BY_REQUEST = "by_request"
    SUPERSEDED = "superseded"


OUTCOME_OF: dict[Reason, Outcome] = {
    Reason.COMPILE_ERROR: Outcome.BUILD_FAILED,
    Reason.COMPILE_TIMED_OUT: Outcome.BUILD_FAILED,
    Reason.ENTRY_MISSING: Outcome.BUILD_FAILED,
    Reason.FLAG_NOT_ALLOWED: Outcome.BUILD_FAILED,
    Reason.NOT_RECORDABLE: Outcome.BUILD_FAILED,
    Reason.NOT_RELOCATABLE: Outcome.BUILD_FAILED,
    Reason.ARCHITECTURE_UNSUPPORTED: Outcome.BUILD_FAILED,
    Reason.CRASHED: Outcome.INCORRECT,
    Reason.TIMED_OUT: Outcome.INCORRECT,
    Reason.RETURNED_ERROR: Outcome.INCORRECT,
    Reason.WRONG_VALUES: Outcome.INCORRECT,
    Reason.NAN_VALUES: Outcome.INCORRECT,
    Reason.OUT_OF_BOUNDS_WRITE: Outcome.INCORRECT,
    Reason.INPUT_MODIFIED: Outcome.INCORRECT,
    Reason.SANITIZER_FINDING: Outcome.INCORRECT,
    Reason.CASE_REFUSED: Outcome.INCORRECT,
    Reason.CLOCKS_DISAGREE: Outcome.UNTRUSTED,
    Reason.FASTER_THAN_ROOFLINE: Outcome.UNTRUSTED,
    Reason.UNTOUCHED_SLOT_WRITTEN: Outcome.UNTRUSTED,
    Reason.LEFT_RUNNING: Outcome.UNTRUSTED,
    Reason.CALLS_OVERLAP: Outcome.UNTRUSTED,
    Reason.ATTEMPTS_EXHAUSTED: Outcome.INFRASTRUCTURE_ERROR,
    Reason.DEADLINE_PASSED: Outcome.INFRASTRUCTURE_ERROR,
    Reason.TOOLCHAIN_MISSING: Outcome.INFRASTRUCTURE_ERROR,
    Reason.SANDBOX_MISSING: Outcome.INFRASTRUCTURE_ERROR,
    Reason.OPERATOR_REFUSED: Outcome.INFRASTRUCTURE_ERROR,
    Reason.OPERATOR_FAILED: Outcome.INFRASTRUCTURE_ERROR,
    Reason.DEVICE_UNHEALTHY: Outcome.INFRASTRUCTURE_ERROR,
    Reason.BASELINE_FAILED: Outcome.INFRASTRUCTURE_ERROR,
    Reason.BASE_FAILED: Outcome.INFRASTRUCTURE_ERROR,
    Reason.OUT_OF_MEMORY: Outcome.INFRASTRUCTURE_ERROR,
    Reason.INTERNAL_ERROR: Outcome.INFRASTRUCTURE_ERROR,
    Reason.BY_REQUEST: Outcome.CANCELLED,
    Reason.SUPERSEDED: Outcome.CANCELLED,
}
