"""What a profile says of a case beside its times: Nsight Compute's figures under names of our own."""

from typing import NamedTuple

from contract.names import MetricName


class Shown(NamedTuple):
    """`words`: the head of a column. None of them is judged: a profile explains a time, it is no evidence."""

    unit: str
    words: str


PROFILE: dict[MetricName, Shown] = {
    "tensor_pipe_utilisation": Shown("%", "tensor pipe"),
    "achieved_occupancy": Shown("%", "occupancy"),
    "dram_throughput": Shown("%", "DRAM"),
    "l2_throughput": Shown("%", "L2"),
    "stall_no_instruction": Shown("cycles", "no instruction"),
    "stall_long_scoreboard": Shown("cycles", "long scoreboard"),
    "stall_barrier": Shown("cycles", "barrier"),
}
