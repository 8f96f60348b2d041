"""Launch flags of the time before `--speculative-config`, and names that documentation has but no release."""

from __future__ import annotations

from typing import NamedTuple


class Retired(NamedTuple):
    """The key that replaced a flag (None: nothing did), the release it was gone in, and the key's own last release."""

    key: str | None
    gone: str = "0.8.3"
    key_last: str | None = None
    note: str = ""


# From create_speculative_config of 0.8.2, the only release with both forms.
FLAGS = {
    "speculative_model": Retired("model", note="`[ngram]` became `method: ngram`"),
    "num_speculative_tokens": Retired("num_speculative_tokens"),
    "speculative_model_quantization": Retired("quantization"),
    "speculative_max_model_len": Retired("max_model_len"),
    "speculative_draft_tensor_parallel_size": Retired("draft_tensor_parallel_size"),
    "speculative_disable_mqa_scorer": Retired("disable_mqa_scorer", key_last="0.9.2"),
    "speculative_disable_by_batch_size": Retired(
        "disable_by_batch_size", key_last="0.16.0", note="nearest today: num_speculative_tokens_per_batch_size (0.24.0)"
    ),
    "ngram_prompt_lookup_max": Retired("prompt_lookup_max"),
    "ngram_prompt_lookup_min": Retired("prompt_lookup_min"),
    "spec_decoding_acceptance_method": Retired("acceptance_method", key_last="0.9.2"),
    "typical_acceptance_sampler_posterior_threshold": Retired("posterior_threshold", key_last="0.9.2"),
    "typical_acceptance_sampler_posterior_alpha": Retired("posterior_alpha", key_last="0.9.2"),
    "disable_logprobs_during_spec_decoding": Retired("disable_logprobs", key_last="0.11.0"),
    "num_lookahead_slots": Retired(None, gone="0.12.0", note="the engine computes it"),
    "use_v2_block_manager": Retired(None, gone="0.10.0", note="there is only one block manager"),
}
"""Flag with underscores to what became of it."""

KEYS = frozenset(name for name, row in FLAGS.items() if name != row.key)
"""Flag names that are no key of any release's speculative settings."""

NEVER_RELEASED = {
    **dict.fromkeys(
        (
            "enable_adaptive_k",
            "adaptive_k_ema_alpha",
            "adaptive_k_c_draft",
            "adaptive_k_min_tokens",
            "adaptive_k_cooldown_steps",
            "adaptive_k_bs_penalty",
            "adaptive_k_alpha_prior",
        ),
        "a documentation page (adaptive_k.md) only",
    ),
    "adaptive_verification": "an older documentation page; the real key is enable_adaptive_verification (0.28.0)",
    "per_request_spec_decode_stats": "an older documentation page; the real one is per_request_spec_decode_metrics (0.29.0)",
}
"""Name to where it stands."""
