#!/usr/bin/env python3
"""Makes tests/golden/steps.safetensors: tiny models of every family, three steps of AdamW by PyTorch in float64.

    python3 tools/step_cases.py tests/golden/steps.safetensors   needs torch, transformers, safetensors

The texts hold padding tokens, whose rows PyTorch leaves out of the gradients of embeddings (padding_idx), and not out of that of a
head that is tied to them. The metadata has for each case its config.json as transformers writes it, and the tensors are

    CASE/lengths, ids, decoder_lengths, decoder_ids, target_tokens, target_ids   as in decoder_cases.py
    CASE/after.NAME                                                              each parameter after the last step

Parameters begin as formula() has it. The loss is the mean cross entropy over the targets; gradients are clipped by their norm,
matrices decay.
"""
import json
import sys

import torch
import transformers as t
from safetensors.torch import save_file

RATES, BETAS, EPS, DECAY, CLIP = (0.02, 0.01, 0.005), (0.8, 0.95), 1e-3, 0.1, 0.5
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
ENCODER = dict(hidden_size=8, num_attention_heads=2, num_hidden_layers=1, intermediate_size=10, vocab_size=13, max_position_embeddings=12,
               **NO_DROPOUT)
PAIR = dict(d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=10,
            decoder_ffn_dim=10, max_position_embeddings=12, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
MARIAN = dict(PAIR, vocab_size=13, decoder_start_token_id=12, pad_token_id=12)
CASES = {
    "bert": (t.BertForMaskedLM, t.BertConfig(**ENCODER)),
    "bert_last": (t.BertForMaskedLM, t.BertConfig(**ENCODER, pad_token_id=-1)),
    "bert_none": (t.BertForMaskedLM, t.BertConfig(**ENCODER, pad_token_id=None)),
    "distilbert": (t.DistilBertForMaskedLM, t.DistilBertConfig(dim=8, n_heads=2, n_layers=1, hidden_dim=10, vocab_size=13, dropout=0.0,
                                                               max_position_embeddings=12, attention_dropout=0.0)),
    "roberta": (t.RobertaForMaskedLM, t.RobertaConfig(**ENCODER, type_vocab_size=1, pad_token_id=1)),
    "electra": (t.ElectraForMaskedLM, t.ElectraConfig(**ENCODER, embedding_size=6)),
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(n_embd=8, n_head=2, n_layer=1, n_positions=12, vocab_size=13, resid_pdrop=0.0, embd_pdrop=0.0,
                                             attn_pdrop=0.0, bos_token_id=2, eos_token_id=3, pad_token_id=0)),
    "bart": (t.BartForConditionalGeneration, t.BartConfig(**PAIR, vocab_size=13, decoder_start_token_id=2)),
    "marian": (t.MarianMTModel, t.MarianConfig(**MARIAN)),
    "marian_separate": (t.MarianMTModel, t.MarianConfig(**MARIAN, decoder_vocab_size=14, share_encoder_decoder_embeddings=False)),
}


def formula(name, n, is_norm):
    """n numbers: between -0.4 and 0.4 by name and place; norms' weights are near 1."""
    h = 0
    for byte in name.encode():
        h = (h * 31 + byte) % 1009
    values = (torch.arange(n, dtype=torch.int64) * 379 + h) % 1009
    return (values.double() / 1009 - 0.5) * 0.8 + (1.0 if is_norm else 0.0)


def padding_of(config):
    pad = config.pad_token_id
    return 0 if pad is None else pad % config.vocab_size


def make_batch(config):
    """Texts of tokens that change from place to place, with padding in the middle and at the end."""
    pad, lengths = padding_of(config), (5, 3, 7)
    words = [w for w in range(13) if w != pad]
    texts = [[words[(3 * b + 5 * i) % len(words)] for i in range(n)] for b, n in enumerate(lengths)]
    for text in texts[1:]:
        text[len(text) // 2] = text[-1] = pad
    targets = [[words[(7 * b + 2 * i + 1) % len(words)] for i in range(n)] for b, n in enumerate(lengths)]
    targets[2][1] = pad  # a head may be asked for it
    decoder = [[config.decoder_start_token_id] + row[:-1] for row in targets] if config.is_encoder_decoder else None
    return texts, decoder, targets


def loss_of(model, batch):
    texts, decoder, targets = batch
    logits = []
    for b, text in enumerate(texts):
        inputs = dict(input_ids=torch.tensor([text]), attention_mask=torch.ones(1, len(text), dtype=torch.long))
        if decoder:
            inputs["decoder_input_ids"] = torch.tensor([decoder[b]])
        logits.append(model(**inputs).logits[0])
    return torch.nn.functional.cross_entropy(torch.cat(logits), torch.tensor(sum(targets, [])))


def run(kind, config):
    config._attn_implementation = "eager"
    model = kind(config).double().train()
    names = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with torch.no_grad():
        for name, p in names.items():
            p.copy_(formula(name, p.numel(), p.dim() == 1 and name.endswith("weight")).reshape(p.shape))
    batch = make_batch(config)
    optimizer = torch.optim.AdamW([{"params": [p for p in names.values() if p.dim() > 1], "weight_decay": DECAY},
                                   {"params": [p for p in names.values() if p.dim() == 1], "weight_decay": 0.0}], betas=BETAS, eps=EPS)
    for rate in RATES:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        torch.nn.utils.clip_grad_norm_(names.values(), CLIP)
        optimizer.step()
    return names, batch


def main(path):
    torch.manual_seed(0)
    tensors, configs = {}, {"made_with": f"torch {torch.__version__}, transformers {t.__version__}"}
    for case, (kind, config) in CASES.items():
        names, (texts, decoder, targets) = run(kind, config)
        rows = {"lengths": [len(x) for x in texts], "ids": sum(texts, []), "target_tokens": list(range(sum(map(len, targets)))),
                "target_ids": sum(targets, [])}
        if decoder:
            rows |= {"decoder_lengths": [len(x) for x in decoder], "decoder_ids": sum(decoder, [])}
        tensors |= {f"{case}/{n}": torch.tensor(row, dtype=torch.int32) for n, row in rows.items()}
        tensors |= {f"{case}/after.{n}": p.detach().float().clone() for n, p in names.items()}
        configs[case] = config.to_diff_dict() | {"pad_token_id": config.pad_token_id}
    save_file(tensors, path, {"cases": json.dumps(configs)})


main(sys.argv[1])
