"""Facts about a pair's artifacts: the `lock` of a spec. Importing this package is cheap; model readers come on use.

Fields of `lock.target` and `lock.draft` (a fact that the files do not state is left out):

    revision    commit of a hub id, or tree digest of a local folder
    files       sha256 of each small file of `speclint.lock.resolve.RECORDED`, null where there is none
    config      model_type, architectures, vocab_size, hidden_size, intermediate_size, num_hidden_layers,
                num_attention_heads, num_key_value_heads, head_dim, max_position_embeddings, dtype, tie_word_embeddings,
                quantization (name or null), mtp_layers, draft_vocab_size, n_predict, block_size, target_hidden_size,
                speculators (true: the checkpoint switches speculation on by itself), remote_code (true: needs it),
                attention {full, sliding, other: layers by what they keep, window, mla_width}; of what drafts, also proposes
                (method of a checkpoint in the speculators format), proposed_tokens, base_model (by the config or, for a head, its
                card), target_layers (whose inputs it reads), mask_token, heads (Medusa), from_anchor
    weights     format (safetensors, pickle, gguf, none), bytes, dtypes (bytes by type), embedding_rows, output_rows,
                mtp_tensors, draft_map_rows, fused_width, pickle_too (true: pickle files lie beside the safetensors),
                headers (`unread`: only the index could be read here)
    tokenizer   kind (fast, tekken, converted, none), class, model and revision (if it is not the model's own),
                lengths {base, with_added, config}, id_map (digest), pipeline (digest of what splits text and merges),
                special {bos, eos, unk, pad: [id, string]}, added (count), stop ([id, string] of the stop set),
                template_tokens (added tokens that the chat template writes), chat_template (true or false), add_bos,
                add_eos; of a draft also missing {used: [strings], unused: [strings, at most 10], count}: special tokens of the
                target that the draft has under no id; used means by the target's chat template or stop set

`lock.pair` compares the two id maps; its `texts` say how many of the fixed texts of `speclint.lock.texts` become other ids.
What came with which layout is in `speclint.lock.format`.
"""

from __future__ import annotations

from speclint.lock.errors import LockError
from speclint.lock.tree import tree_digest

__all__ = ["LockError", "tree_digest"]
