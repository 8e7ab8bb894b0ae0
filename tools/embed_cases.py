#!/usr/bin/env python3
"""Makes the goldens of sentence vectors: tiny random models in folders of sentence-transformers.

    python3 tools/embed_cases.py tests/golden/embed      needs torch, transformers, sentence-transformers

Each folder is one as sentence-transformers saves it (the older one with the names of version 2), and
expected.safetensors: ids of texts one after another, lengths, and the vectors that float64 makes of them.
"""
import json
import pathlib
import sys

import sentence_transformers
import torch
import transformers as t
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer

from fixtures import randomize, vocabulary

SIZES = dict(hidden_size=20, num_attention_heads=2, num_hidden_layers=2, intermediate_size=37, vocab_size=53,
             max_position_embeddings=23)
LENGTHS = [7, 12, 2, 7, 3, 17, 12, 2]
MODES = {"mean": True, "cls": False, "max": True, "mean_sqrt_len_tokens": False, "weightedmean": False,
         "lasttoken": True}
OLD = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken",
       "mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "weightedmean": "weightedmean_tokens"}


def main(root):
    for place, (mode, normalize) in enumerate(MODES.items()):
        generator = torch.Generator().manual_seed(200 + place)
        folder = pathlib.Path(root) / mode
        bert = t.BertModel(t.BertConfig(**SIZES, attn_implementation="eager"), add_pooling_layer=False)
        with torch.no_grad():
            randomize(bert, generator)
        plain = folder / "plain"
        bert.save_pretrained(plain)
        (plain / "vocab.txt").write_text("\n".join(vocabulary(53)) + "\n")
        t.BertTokenizer(str(plain / "vocab.txt")).save_pretrained(plain)
        parts = [Transformer(str(plain), max_seq_length=19), Pooling(20, mode)] + [Normalize()] * normalize
        model = SentenceTransformer(modules=parts, device="cpu").double().eval()
        model.save_pretrained(str(folder))
        ids = [torch.randint(5, 53, (n,), generator=generator) for n in LENGTHS]
        vectors = [model({"input_ids": i[None], "attention_mask": torch.ones(1, len(i), dtype=torch.long)})
                   ["sentence_embedding"][0] for i in ids]
        for extra in ("README.md", "tokenizer.json", "special_tokens_map.json", "tokenizer_config.json",
                      "config_sentence_transformers.json"):
            (folder / extra).unlink(missing_ok=True)
        for file in plain.iterdir():
            if file.name != "vocab.txt":
                file.unlink()
        (plain / "vocab.txt").rename(folder / "vocab.txt")
        plain.rmdir()
        for empty in (d for d in folder.iterdir() if d.is_dir() and not any(d.iterdir())):
            empty.rmdir()
        if place % 2:  # as version 2 wrote it
            old = {f"pooling_mode_{name}": m == mode for m, name in OLD.items()}
            (folder / "1_Pooling" / "config.json").write_text(
                json.dumps({"word_embedding_dimension": 20, **old, "include_prompt": True}, indent=2) + "\n")
        bert.float().save_pretrained(folder)
        save_file({"ids": torch.cat(ids).int().numpy(), "lengths": torch.tensor(LENGTHS).int().numpy(),
                   "vectors": torch.stack(vectors).float().detach().numpy()}, folder / "expected.safetensors",
                  metadata={"made_with": f"sentence-transformers {sentence_transformers.__version__}"})


if __name__ == "__main__":
    main(sys.argv[1])
