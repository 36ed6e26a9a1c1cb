"""Reviews: questions that are answered and not kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.minicluster.kinds.csr import ADMIN
from agent.minicluster.resource import Object, Resource

if TYPE_CHECKING:
    from collections.abc import Callable


def _allowed(_: Object) -> Object:
    """Everything is allowed in a cluster of one person."""
    return {"allowed": True, "reason": "the embedded cluster allows everything"}


def _unauthenticated(_: Object) -> Object:
    return {"user": {}, "error": "unknown token"}


def _whoami(_: Object) -> Object:
    return {"userInfo": ADMIN}


def _review(group: str, kind: str, status: Callable[[Object], Object], *, namespaced: bool = False) -> Resource:
    return Resource(
        group=group,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        kind=kind,
        namespaced=namespaced,
        verbs=("create",),
        answer=lambda review: review | {"status": status(review)},
    )


TOKEN_REVIEWS = _review("authentication.k8s.io", "TokenReview", _unauthenticated)
REVIEWS = (
    TOKEN_REVIEWS,
    _review("authentication.k8s.io", "SelfSubjectReview", _whoami),
    _review("authorization.k8s.io", "SubjectAccessReview", _allowed),
    _review("authorization.k8s.io", "SelfSubjectAccessReview", _allowed),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", _allowed, namespaced=True),
)


def token_status(review: Object, usernames: dict[str, str]) -> Object:
    """Who a bearer token belongs to, if anyone."""
    username = usernames.get((review.get("spec") or {}).get("token", ""))
    if username is None:
        return _unauthenticated(review)
    return {"authenticated": True, "user": {"username": username, "groups": ["system:authenticated"]}}
