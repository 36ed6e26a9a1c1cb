"""Reviews of tokens and of access."""

from typing import TYPE_CHECKING

from agent.core.model import Object
from agent.ports import Forbidden, ReviewApi, Unavailable


class FakeReviews:
    """An API server that knows some tokens and some rights, and counts how often it is asked."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.rights: set[tuple[str, str, str]] = set()
        self.asked: list[str] = []
        self.away = 0  # how many of the next questions get no answer
        self.is_forbidden = False  # whether we may not ask at all

    async def token(self, token: str) -> Object:
        self._ask("token")
        name = self.tokens.get(token)
        return {"authenticated": True, "user": {"username": name}} if name else {"authenticated": False}

    async def access(self, question: Object) -> Object:
        self._ask(question["resourceAttributes"]["subresource"])
        attributes = question["resourceAttributes"]
        return {"allowed": (question["user"], attributes["verb"], attributes["subresource"]) in self.rights}

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.away:
            self.away -= 1
            raise Unavailable("connection refused")
        if self.is_forbidden:
            raise Forbidden("reviews are forbidden")


if TYPE_CHECKING:
    _: ReviewApi = FakeReviews()
