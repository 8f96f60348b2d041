"""SL424 tool-owned-argument: an engine argument, a variable or a field of the request that the runner sets itself.

Addresses, keys, model names, prefix caching, logging and streaming are the runner's: they must be the same in every arm or
would spoil what is measured. Fields such as `echo` change what is prompted or counted. A credential never stands in a spec,
which is committed and read by many: whatever has its name or form (`aws_secret_access_key`, the password in a URL, `hf_…`) is
refused, at any depth.

Fails:

    engine_args: {port: 8000, disable_log_stats: true}

Passes:

    engine_args: {max_model_len: 1024}

Way out: remove it; the help names the key of the spec that does the same, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speclint.credentials import is_credential
from speclint.diagnostic import Finding, pointer
from speclint.releases import Release
from speclint.spec import Spec

SEVERITY = "error"
NEEDS = "spec"

OWNED = {
    **dict.fromkeys(("host", "port", "uds", "root_path", "served_model_name"), "the runner chooses where servers listen"),
    **dict.fromkeys(("api_key", "hf_token", "ssl_keyfile", "ssl_certfile"), "secrets never stand in a spec"),
    **dict.fromkeys(("model", "model_tag"), "write it as pair.target.model"),
    "revision": "write it as pair.target.revision",
    "speculative_config": "write it as pair.speculative",
    "enable_prefix_caching": "write it as protocol.load.prefix_caching",
    "no_enable_prefix_caching": "write it as protocol.load.prefix_caching",
    "generation_config": "write sampling out under protocol.sampling",
    "override_generation_config": "write sampling out under protocol.sampling",
    **dict.fromkeys(("disable_log_stats", "disable_log_requests", "enable_log_requests"), "the runner reads the log"),
    "stream_interval": "each step must be seen as it happens",
}
BODY = ("protocol", "request", "extra_body")
FIELDS = {
    **dict.fromkeys(("prompt", "messages"), "prompts are those of the workloads"),
    **dict.fromkeys(("stream", "stream_options", "return_token_ids"), "each step must be seen as it happens"),
    "model": "write it as pair.target.model",
}
TURNED = {
    "echo": "the prompt would come back as part of the answer",
    "prompt_logprobs": "every position of the prompt would be scored, which is counted as TTFT",
    "truncate_prompt_tokens": "prompts would be other than the locked ones",
    "prompt_embeds": "vectors would be prompted beside the locked prompts",
}
"""Fields of the request that the runner never sends, with what each one does; `false` and `null` do nothing."""
VARIABLES = {
    "VLLM_API_KEY": "secrets never stand in a spec",
    "VLLM_SERVER_DEV_MODE": "the runner sets it",
    "VLLM_NO_USAGE_STATS": "the runner sets it",
}


def check(spec: Spec, release: Release | None) -> Iterator[Finding]:
    for key in spec.engine_args:
        name = key.lstrip("-").replace("-", "_")
        if name in OWNED:
            message = f"`{key}` is set by the runner"
            yield Finding(pointer("pair", "engine_args", key), message, f"remove it: {OWNED[name]}", on_key=True)
    for key in spec.section("pair", "env"):
        if key in VARIABLES:
            path, message = pointer("pair", "env", key), f"`{key}` is set by the runner"
            yield Finding(path, message, f"remove it: {VARIABLES[key]}", on_key=True)
    for key, value in spec.section(*BODY).items():
        if key in TURNED and value is not None and value is not False:
            yield Finding(pointer(*BODY, key), f"`{key}` changes what is measured: {TURNED[key]}", "remove it", on_key=True)
        if key in FIELDS:
            yield Finding(pointer(*BODY, key), f"`{key}` is set by the runner", f"remove it: {FIELDS[key]}", on_key=True)
    for keys in (("pair", "engine_args"), ("pair", "env"), ("pair", "speculative"), BODY):
        yield from _credentials(keys, spec.section(*keys))


def _credentials(keys: tuple[str | int, ...], value: Any) -> Iterator[Finding]:
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in named:
        if len(keys) == 2 and str(name).replace("-", "_") in OWNED.keys() | VARIABLES.keys():
            continue
        if isinstance(inner, str) and is_credential(str(name), inner):
            help = "revoke it if the file was pushed; servers get HF_TOKEN from the shell that runs specrun, and nothing else"
            yield Finding(pointer(*keys, name), f"`{'.'.join(map(str, (*keys[2:], name)))}` holds a credential", help)
        yield from _credentials((*keys, name), inner)
