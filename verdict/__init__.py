"""The statistics: samples in, verdict out. Pure functions on NumPy arrays, no I/O.

`decide` judges one comparison, `decide_all` the cases of one evaluation together, `published` two values without
samples, `same_artifact` two revisions that are the same machine code.
"""

from verdict.alpha import LOOKS
from verdict.deciding import decide, decide_all
from verdict.unsampled import published, same_artifact

__all__ = ["LOOKS", "decide", "decide_all", "published", "same_artifact"]
