"""Steps in a history: when a series went to another level and stayed there. Pure; one point at a time.

`Tracker` takes the points of one mainline series in order and keeps what it needs of them, so that a further point
costs the same however long the history is; `changes_of` runs one over a whole series.
"""

from verdict.history.points import Outlier, Point, SegmentStart, Step
from verdict.history.tracker import Pending, Tracker, changed_fields, changes_of

__all__ = ["Outlier", "Pending", "Point", "SegmentStart", "Step", "Tracker", "changed_fields", "changes_of"]
