"""``Upstream``: one model behind an address in OpenAI's format: its answers, streams, failures and costs."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import httpx
import msgspec
from msgspec import Meta

from onlineauto.service.loop.route_status import EndpointStatus

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from onlineauto.service.routing.endpoints import ModelEndpoint
    from onlineauto.service.routing.prompt import Body

_MOST_BYTES: Final = 1 << 25
"""Maximum size of an answer."""
_MOST_EVENT: Final = 1 << 20
"""Maximum size of one event of a stream."""
_END_BYTES: Final = 4
"""Number of bytes of the longest end of an event."""
_FAILURES: Final = 3
"""Number of failures in a row after which a model is not picked for some time."""
_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 300.0
_REJECTED: Final = (400, 413, 422)
"""What a model answers if the request itself is wrong, so that no other model is asked."""
_UNAVAILABLE: Final = (401, 403, 429)
"""What it answers if a key is wrong, or to too many requests: that says nothing of its answers."""
_EVENT_END: Final = re.compile(rb"\r?\n\r?\n")
_MILLION: Final = 1e6
_CHARACTERS: Final = 4
"""Number of characters of a token, about."""
_FAR: Final = 10
"""Multiple of the mean beyond which a number of tokens is absurd: the mean takes this bound instead."""
_FIRST_TOKENS: Final = 300
"""Number of tokens of an answer that is assumed before the first one."""
_USAGE: Final = msgspec.Raw(b'{"include_usage":true}')


class Usage(msgspec.Struct):
    """The tokens that an answer has used."""

    prompt_tokens: Annotated[int, Meta(ge=0, le=10**8)] = 0
    completion_tokens: Annotated[int, Meta(ge=0, le=10**8)] = 0


class _Text(msgspec.Struct):
    content: Any = None


class _Choice(msgspec.Struct):
    message: _Text | None = None
    delta: _Text | None = None
    text: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: msgspec.Raw = msgspec.Raw(b"null")  # decoded apart, since a wrong one is no failure


class _ErrorEvent(msgspec.Struct):
    error: Any


_COMPLETION: Final = msgspec.json.Decoder(_Completion)
_ERROR: Final = msgspec.json.Decoder(_ErrorEvent)
_USED: Final = msgspec.json.Decoder(Usage | None)


class UpstreamError(Exception):
    """A model has not answered, or not what it should.

    With a `pause`, which has seconds, the model is not picked meanwhile, and nothing is learnt of it.
    """

    def __init__(self, kind: str, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.kind, self.pause = kind, pause


class RejectedError(Exception):
    """A model rejects the request itself, with a status and a body for the client."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class Completion(msgspec.Struct):
    """An answer, or an event of a stream: its bytes, its text, and its usage once that is known."""

    content: bytes
    text: str = ""
    usage: Usage | None = None
    n_choices: int = 1


class Upstream:
    """A model; it is not picked for a while after several failures in a row."""

    def __init__(self, name: str, endpoint: ModelEndpoint, key: str, http: httpx.AsyncClient) -> None:
        self.endpoint, self.counts, self._http = endpoint, EndpointStatus(name=name, failures={}), http
        self._url = endpoint.url.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._in_row, self._down_until = 0, 0.0
        self._priced, self._tokens = 0, _FIRST_TOKENS  # the answers, and their tokens, without absurd numbers

    @property
    def is_down(self) -> bool:
        """True while the model is not picked, because it has failed several times in a row."""
        self.counts.down = time.monotonic() < self._down_until
        return self.counts.down

    async def complete(self, path: str, body: Body) -> Completion:
        """Return an answer; raise `UpstreamError` or `RejectedError` if there is none."""
        began = self._begin()
        try:
            async with asyncio.timeout(self.endpoint.timeout):
                response = await self._send(path, body)
                answer = _read_event(await _content_of(response))
            if not answer.n_choices:
                raise ValueError("it has no choices")
        except Exception as error:
            raise self._failure(error) from None
        self._succeed(answer.usage, began)
        return answer

    async def stream(self, path: str, body: Body) -> AsyncGenerator[Completion, None]:
        """Yield the events of a streamed answer; the content of one that the client must not see is empty.

        The content of the first event is its data only, so that more can be said in it.
        An error before the first event is that of `complete`; a later one ends the stream.
        """
        began, usage, response, is_done = self._begin(), None, None, False
        prices = self.endpoint.input_price or self.endpoint.output_price
        hides_usage = bool(prices) and "stream_options" not in body
        if hides_usage:  # the usage has the cost; a client that does not ask for it gets no such event
            body = body | {"stream_options": _USAGE}
        try:
            async with asyncio.timeout(self.endpoint.timeout):
                response = await self._send(path, body)
                kind = response.headers.get("content-type", "")
                if not kind.startswith("text/event-stream"):
                    raise ValueError(f"the answer to a stream is {kind or 'without a type'}")
                events = _events_of(response)
                event = await anext(events)
                while not (data := _data_of(event)):  # comments that keep the connection
                    event = await anext(events)
                first = _read_event(data)
            usage = first.usage
            yield first
            async for event in events:
                data, later = _data_of(event), Completion(event)
                is_done = is_done or data == b"[DONE]"
                if data and not is_done:
                    try:
                        later = _read_event(data)
                        later.content = event
                    except (ValueError, msgspec.MsgspecError):
                        _raise_error_in(data)
                usage = later.usage or usage
                if hides_usage and not later.n_choices:
                    later.content = b""
                yield later
            if not is_done:
                raise httpx.RemoteProtocolError("the stream has ended before [DONE]")
        except (GeneratorExit, asyncio.CancelledError):
            self._succeed(usage, began)  # the client has left
            raise
        except Exception as error:
            if not is_done:  # a model that does not end its stream behind [DONE] has answered
                raise self._failure(error) from None
        finally:
            if response is not None:
                await response.aclose()
        self._succeed(usage, began)

    async def _send(self, path: str, body: Body) -> httpx.Response:
        """Send a request, and return the response whose body is not read yet."""
        named = msgspec.json.encode(self.endpoint.model or self.counts.name)
        content = msgspec.json.encode(body | {"model": msgspec.Raw(named)})
        request = self._http.build_request(
            "POST", self._url + path, content=content, headers=self._headers, timeout=self.endpoint.timeout
        )
        response = await self._http.send(request, stream=True)
        if response.status_code == 200:
            return response
        content = await _content_of(response)
        if response.status_code in _REJECTED:
            raise RejectedError(response.status_code, content)
        text = " ".join(content[:300].decode("utf-8", "replace").split())
        raise UpstreamError("status", f"it answers {response.status_code}: {text}", _pause_of(response))

    def _begin(self) -> float:
        self.counts.requests += 1
        return time.perf_counter()

    def _succeed(self, usage: Usage | None, began: float) -> None:
        counts, self._in_row = self.counts, 0
        counts.seconds += time.perf_counter() - began
        if usage is None:
            counts.unpriced += 1
            return
        counts.input_tokens += usage.prompt_tokens
        counts.output_tokens += usage.completion_tokens
        self._tokens += min(usage.completion_tokens, _FAR * max(self._mean_tokens, _FIRST_TOKENS))
        self._priced += 1
        counts.dollars += self.cost_of(usage)

    def cost_of(self, usage: Usage) -> float:
        """Return the dollars that an answer has cost."""
        prices = self.endpoint
        cost = usage.prompt_tokens * prices.input_price + usage.completion_tokens * prices.output_price
        return cost / _MILLION

    def expected_cost(self, characters: int) -> float:
        """Return the dollars that an answer will probably cost, by the mean length of answers so far."""
        return self.cost_of(Usage(characters // _CHARACTERS, self._mean_tokens))

    @property
    def _mean_tokens(self) -> int:
        return self._tokens // (self._priced + 1)

    def _failure(self, error: BaseException) -> BaseException:
        """Count a failure, and return the error to raise."""
        counts, failure = self.counts, _failure_of(error, self.endpoint.timeout)
        if isinstance(failure, UpstreamError):
            self._in_row += 1
            counts.last_error = str(failure)
            if self._in_row >= _FAILURES:
                pause = min(_PAUSE * 2.0 ** min(self._in_row - _FAILURES, 10), _LONGEST_PAUSE)
                self._down_until = time.monotonic() + pause
            if failure.pause is not None:
                self._down_until = max(self._down_until, time.monotonic() + failure.pause)
        kind = failure.kind if isinstance(failure, UpstreamError) else "rejected"
        counts.failed += 1
        counts.failures[kind] = counts.failures.get(kind, 0) + 1
        return failure


def _failure_of(error: BaseException, timeout: float) -> BaseException:
    """Return the failure of a model that an error is, or the error itself."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return UpstreamError("timeout", f"no answer within {timeout:g} seconds")
    if isinstance(error, httpx.HTTPError | httpx.InvalidURL | OSError):
        return UpstreamError("connection", f"the connection failed: {str(error) or type(error).__name__}")
    if isinstance(error, ValueError | msgspec.MsgspecError | RecursionError | StopAsyncIteration):
        reason = str(error) or "it has no event"
        return UpstreamError("nonsense", f"the answer is not in OpenAI's format: {reason}")
    return error


def _pause_of(response: httpx.Response) -> float | None:
    """Return the seconds for which a model says that it is not available, None if it does not."""
    wait = response.headers.get("retry-after", "")
    if response.status_code not in _UNAVAILABLE and not (response.status_code == 503 and wait):
        return None
    return min(float(wait), _LONGEST_PAUSE) if wait.isascii() and wait.isdigit() else _PAUSE


async def _content_of(response: httpx.Response) -> bytes:
    """Return the body of a response, up to a maximum size, and close the response."""
    content = bytearray()
    async with aclosing(response):
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > _MOST_BYTES:
                raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    return bytes(content)


async def _events_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the server-sent events of a response, each with its end."""
    rest, searched = bytearray(), 0
    async for piece in response.aiter_bytes():
        rest += piece
        begin = 0
        while (end := _EVENT_END.search(rest, searched)) is not None:
            yield bytes(rest[begin : end.end()])
            begin = searched = end.end()
        del rest[:begin]
        if len(rest) > _MOST_EVENT:
            raise ValueError(f"an event has more than {_MOST_EVENT} bytes")
        searched = max(len(rest) - _END_BYTES + 1, 0)
    if rest.strip():
        yield bytes(rest) + b"\n\n"


def _data_of(event: bytes) -> bytes:
    """Return the data of a server-sent event.

    >>> _data_of(b": comment"), _data_of(b"event: x" + bytes([10]) + b"data: 1")
    (b'', b'1')
    """
    lines = (line for line in event.splitlines() if line.startswith(b"data:"))
    return b"\n".join(line[5:].strip() for line in lines)


def _raise_error_in(data: bytes) -> None:
    """Raise the error that an event of a stream has; servers such as vLLM send [DONE] behind it."""
    with suppress(ValueError, msgspec.MsgspecError):
        raise UpstreamError("status", f"the stream has the error {_ERROR.decode(data).error}"[:300])


def _read_event(content: bytes) -> Completion:
    """Return an answer, or an event of a stream, which may have the usage only."""
    read = _COMPLETION.decode(content)
    texts: list[Any] = []
    for choice in read.choices:
        part = choice.message or choice.delta
        texts.append(choice.text if part is None else part.content)
    text = "".join(text for text in texts if isinstance(text, str))
    usage = None
    with suppress(ValueError, msgspec.MsgspecError):
        usage = _USED.decode(read.usage)
    return Completion(content, text, usage, len(read.choices))
