"""The stand-in server, telling every credential it can: in its log, its configuration, its headers and its answers.

python leaky.py CREDENTIALS.json [the stand-in's own words]

The file maps the name of an environment variable to a value; it stands for what a real server may find in its home folder.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import stand_in
from aiohttp import web

TOLD: dict[str, str] = {}


async def server_info(request: web.Request) -> web.Response:
    """The stand-in's configuration with credentials under their own names, nested, and inside other text."""
    info = json.loads((await stand_in_info(request)).text)
    config = info["vllm_config"]
    config["model_config"]["hf_token"] = TOLD["HF_TOKEN"]
    config["load_config"] = {
        "extra": [{"aws_secret_access_key": TOLD["AWS_SECRET_ACCESS_KEY"], "Authorization": TOLD["OPENAI_API_KEY"]}]
    }
    config["kv_transfer_config"] = {"url": TOLD["HTTPS_PROXY"], "note": f"reads with {TOLD['AWS_ACCESS_KEY_ID']}"}
    return web.json_response(info)


async def answer(request: web.Request) -> web.StreamResponse:
    """Every fifth request is refused with words that hold credentials."""
    made = request.app[stand_in.ENGINE_KEY]
    if made.requests and made.requests % 5 == 0:
        made.requests += 1
        return web.Response(status=401, text=f"no access with {TOLD['HF_TOKEN']}, {(await request.json())['prompt']}")
    found: web.StreamResponse = await stand_in_answer(request)
    return found


async def with_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Set-Cookie"] = f"session={TOLD['GITHUB_TOKEN']}"
    response.headers["X-Api-Key"] = TOLD["WANDB_API_KEY"]


def application(made: stand_in.Engine) -> web.Application:
    app = stand_in_application(made)
    app.on_response_prepare.append(with_headers)
    return app


def tell() -> None:
    """What a careless engine logs."""
    print(f"INFO non-default args: {{'hf_token': '{TOLD['HF_TOKEN']}', 'api_key': ['{TOLD['OPENAI_API_KEY']}']}}")
    print(f"INFO environment: {dict(os.environ)}")
    print(f"WARNING Very slow proxy {TOLD['HTTPS_PROXY']}, remote {TOLD['PIP_INDEX_URL']}")
    print(f"DEBUG headers: Authorization: Bearer {TOLD['WANDB_API_KEY']}")
    for value in TOLD.values():
        print(f"DEBUG {value}", flush=True)


def main(words: list[str]) -> None:
    TOLD.update(json.loads(Path(words[0]).read_text(encoding="utf-8")))
    if not any(word.endswith("vllm_probe.py") for word in words):
        tell()
    stand_in.main(words[1:])


names: Any = stand_in
stand_in_info, stand_in_answer, stand_in_application = names.server_info, names.answer, names.application
names.server_info, names.answer, names.application = server_info, answer, application

if __name__ == "__main__":
    main(sys.argv[1:])
