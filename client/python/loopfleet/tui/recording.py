"""Recording: the actions that lead from the start to a tree, as long as actions suffice."""

from __future__ import annotations

from dataclasses import dataclass

from .._core import LoopTree, Walk


@dataclass(frozen=True)
class Recording:
    """Actions of dialect agent, from cursor 0 under the rules `structural`. Invariant: they lead to the tree that
    the recording belongs to. Steps share what is before them."""

    before: Recording | None = None
    names: tuple[str, ...] = ()
    cursor: int = 0  # where they leave it

    def then(self, tree: LoopTree, loop: int, action: str, after: LoopTree) -> Recording | None:
        """With ``action`` at ``loop`` of ``tree`` added; None: that does not lead to ``after``."""
        walk = Walk(ir=tree.serialize(), start_cursor=self.cursor)
        while walk.cursor != loop:
            if not walk.apply("down" if walk.cursor < loop else "up"):
                return None
        if not walk.apply(action) or walk.tree_key.hex() != after.tree_key:
            return None
        return Recording(self, tuple(walk.history), walk.cursor)

    @property
    def actions(self) -> list[str]:
        parts, at = [], self
        while at is not None:
            parts.append(at.names)
            at = at.before
        return [name for names in reversed(parts) for name in names]


def recording_of(start: LoopTree, tree: LoopTree) -> Recording | None:
    """Of a tree that was made elsewhere. None: no actions are known that lead there."""
    actions = tree.actions_from(start)
    if actions is None:
        return None
    walk = Walk(ir=start.serialize())
    for action in actions:
        walk.apply(action)
    return Recording(None, tuple(actions), walk.cursor)
