"""What a call of the library can end with, and the exceptions that tell it."""

from __future__ import annotations

import enum


class Result(enum.IntEnum):
    """ncclResult_t."""

    SUCCESS = 0
    UNHANDLED_CUDA_ERROR = 1
    SYSTEM_ERROR = 2
    INTERNAL_ERROR = 3
    INVALID_ARGUMENT = 4
    INVALID_USAGE = 5
    REMOTE_ERROR = 6
    IN_PROGRESS = 7
    TIMEOUT = 8


class Error(RuntimeError):
    """A call failed. `call` is its name, `result` how it ended, `text` the library's sentence about it."""

    def __init__(self, call: str, result: int, text: str) -> None:
        self.call = call
        self.result = Result(result) if result in Result._value2member_map_ else result
        self.text = text
        name = self.result.name if isinstance(self.result, Result) else str(result)
        # The library's texts often start with the name of the call.
        super().__init__(f"{text} [{name}]" if text.startswith(call) else f"{call}: {text} [{name}]")

    def __reduce__(self) -> tuple[type[Error], tuple[str, int, str]]:
        # For multiprocessing, which passes exceptions on by pickle.
        return type(self), (self.call, int(self.result), self.text)


class RemoteError(Error):
    """Another rank or its host failed; the text names it."""


class LimitError(Error, TimeoutError):
    """A limit passed, such as HCCL_TIMEOUT or HCCL_INIT_TIMEOUT; the text names whom the rank waited for."""


class ClosedError(Error):
    """The communicator was closed or aborted before."""


class MeetingError(RuntimeError):
    """The ranks cannot find each other: the environment, the file or the store does not say how."""


class LibraryError(ImportError):
    """The shared library is not there, or is not HCCL."""


_KINDS = {Result.REMOTE_ERROR: RemoteError, Result.TIMEOUT: LimitError}


def error(call: str, result: int, text: str) -> Error:
    """The exception for a result other than success."""
    kind = _KINDS.get(Result(result), Error) if result in Result._value2member_map_ else Error
    return kind(call, result, text)
