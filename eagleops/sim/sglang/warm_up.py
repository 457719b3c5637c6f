"""SGLang's warm-up: a request to its own port, after which it says that it is ready."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable

from eagleops.sim.engine import scaled
from eagleops.sim.settings import Settings
from eagleops.sim.sglang.api import Api
from eagleops.sim.sglang.arguments import Arguments
from eagleops.sim.sglang.log import Log

_LIMIT_S = 600.0
_POLL_S = 0.02
_READY = "The server is fired up and ready to roll!"


class WarmUp(threading.Thread):
    """Asks the port until it answers, and then for eight tokens.

    Args:
        when_up: Called as soon as the server is ready.
    """

    def __init__(
        self,
        arguments: Arguments,
        settings: Settings,
        api: Api,
        log: Log,
        when_up: Callable[[], None],
    ) -> None:
        super().__init__(daemon=True)
        host = str(arguments["host"])
        self._address = ("127.0.0.1" if host in {"0.0.0.0", "::"} else host, int(arguments["port"]))  # noqa: S104
        self._skip = bool(arguments["skip_server_warmup"])
        self._settings = settings
        self._api = api
        self._log = log
        self._when_up = when_up

    def run(self) -> None:
        """Runs the warm-up."""
        if not self._skip:
            try:
                self._ask()
            except (OSError, http.client.HTTPException, AssertionError):
                self._log(f"Initialization failed. warmup error: {traceback.format_exc()}")
                os.kill(os.getpid(), signal.SIGQUIT)
                return
        self._when_up()
        self._api.up.set()
        self._log(_READY)

    def _ask(self) -> None:
        began_s = time.monotonic()
        while not self._answers():
            if time.monotonic() - began_s > _LIMIT_S:
                raise OSError("no answer")
            time.sleep(_POLL_S)
        time.sleep(scaled(self._settings.warmup_s, self._settings))
        if self._settings.fail == "warmup":
            raise AssertionError("res=<Response [500]>, res.text='Internal Server Error'")
        body = {
            "text": "The capital city of France is",
            "sampling_params": {"temperature": 0, "max_new_tokens": 8},
        }
        status = self._request("POST", "/generate", json.dumps(body))
        if status != http.HTTPStatus.OK:
            raise AssertionError(f"res=<Response [{status}]>")

    def _answers(self) -> bool:
        try:
            return self._request("GET", "/model_info") == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def _request(self, method: str, path: str, body: str | None = None) -> int:
        connection = http.client.HTTPConnection(*self._address, timeout=_LIMIT_S)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()
