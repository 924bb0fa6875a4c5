"""Errors as clients see them."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """An error with an HTTP status and the body of the engine."""

    def __init__(
        self, message: str, status: int = 400, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        """The JSON body; only a bad request has a type."""
        error: dict[str, Any] = {"message": str(self)}
        if self.status == 400:
            error["type"] = "invalid_request_error"
        if self.param:
            error["param"] = self.param
        if self.code:
            error["code"] = self.code
        return {"error": error}


def window_exceeded(window: int, prompt: int, asked: int, param: str) -> ApiError:
    """The prompt and the explicit budget together do not fit the window."""
    return ApiError(
        f"This server's maximum context length is {window} tokens. However, you requested "
        f"{prompt + asked} tokens ({prompt} in the {param}, {asked} in the completion).",
        param=param,
        code="context_length_exceeded",
    )
