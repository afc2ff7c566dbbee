"""A grip that takes the object along a segment's path, whatever the commands planned were."""

from __future__ import annotations

from qdsim.planning.execution.loops.hand import Hand
from qdsim.planning.execution.loops.loop import Commands, Outcome, Record
from qdsim.planning.execution.schedule import Schedule

__all__ = ["GripLoop"]


class GripLoop:
    """Fingers close, then follow: a segment begins in its grasp, which the loop itself goes to and leaves.

    Args:
        hand: what the grip drives.
        settle: s, that the object is held at the segment's end.
    """

    failures = 0

    def __init__(self, hand: Hand, settle: float) -> None:
        self.hand, self.settle = hand, settle

    def begin(self, schedule: Schedule) -> Commands[None]:
        """The fingers close, from springs at rest."""
        self.hand.rest(self.hand.world.q)
        yield from self.hand.close()

    def follow(self, schedule: Schedule, record: Record) -> Commands[Outcome]:
        """The object goes along the segment's path."""
        return (yield from self.hand.follow(schedule, record, self.settle))
