"""``RefusedError``: a request is rejected, with the reason and the HTTP status."""

from __future__ import annotations

from onlineauto.errors import InputError


class RefusedError(InputError):
    """A request that is rejected."""

    def __init__(self, message: str, *, status: int = 400, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after
