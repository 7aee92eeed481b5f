"""``RefusedError``: a request is rejected, with the reason and the HTTP status."""

from __future__ import annotations

from onlineauto.errors import InputError


class RefusedError(InputError):
    """A request that is rejected.

    Parameters
    ----------
    message : str
        The problem, and what would be valid.
    status : int
        400 malformed, 404 unknown, 409 conflict with another request, 413 too large, 422 conflict with an
        earlier request of the same key, 429 too many, 503 cannot be written.
    retry_after : float, optional
        Seconds after which the same request may succeed.
    """

    def __init__(self, message: str, *, status: int = 400, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after
