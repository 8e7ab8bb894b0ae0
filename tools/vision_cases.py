#!/usr/bin/env python3
"""Makes goldens of models that read images: tiny random models, run by transformers in float64.

    python3 tools/vision_cases.py tests/golden/vision [NAME...]     needs torch, transformers 5, safetensors
    python3 tools/vision_cases.py DIR --random 40 [--seed S] [--kinds vit,deit,...]

Each folder is a model as save_pretrained writes it, and expected.safetensors: images (image.I, any_size), and what float64 arithmetic
makes of the f32 weights: hidden.L (the last one is last_hidden_state), weights.L, pooled, joint, logits of classes, and of the
images of the model's own size labels, loss and every gradient (grad.NAME); effects [sets + 1][labels] are ln p of the classes of
image 0 without ablation, and with each head, all heads of layer 0, and the first and the last head giving 0. CLIP also has texts: text_ids, text_lengths, text_hidden.L,
text_weights.L, text_pooled, text_joint, and match [images][texts].

With --random the folders are drawn: build/release/tests/golden_vision DIR/* compares qkv with them. A seed draws the same folders.
"""
import argparse
import copy
import functools
import json
import pathlib
import random
import sys
import tempfile

import torch
import transformers as t
from safetensors.torch import load_file, save_file

from fixtures import vocabulary
from llama_cases import double

F32 = torch.float32
SIZES = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=29)
LABELS = {"id2label": {0: "cat", 1: "dog", 2: "a <b>&"}, "label2id": {"cat": 0, "dog": 1, "a <b>&": 2}}
CLIP_TEXT = dict(SIZES, vocab_size=41, max_position_embeddings=12, hidden_size=20, num_attention_heads=2, projection_dim=10,
                 bos_token_id=39, eos_token_id=40, pad_token_id=0)

# name: class, config, fields
MODELS = {
    "vit_1": ("ViTForImageClassification", "ViTConfig", dict(SIZES, image_size=16, patch_size=4, **LABELS)),
    "vit_2": ("ViTModel", "ViTConfig", dict(SIZES, image_size=14, patch_size=4, qkv_bias=False, hidden_act="gelu_new")),
    "deit_1": ("DeiTForImageClassificationWithTeacher", "DeiTConfig", dict(SIZES, image_size=12, patch_size=4, **LABELS)),
    "dinov2_1": ("Dinov2ForImageClassification", "Dinov2Config", dict(SIZES, image_size=20, patch_size=4, mlp_ratio=2, **LABELS)),
    "dinov2_2": ("Dinov2Model", "Dinov2Config", dict(SIZES, image_size=12, patch_size=4, use_swiglu_ffn=True)),
    "registers_1": ("Dinov2WithRegistersForImageClassification", "Dinov2WithRegistersConfig",
                    dict(SIZES, image_size=24, patch_size=4, num_register_tokens=3, **LABELS)),
    "dinov3_1": ("DINOv3ViTModel", "DINOv3ViTConfig", dict(SIZES, image_size=16, patch_size=4, num_register_tokens=2)),
    "siglip_1": ("SiglipVisionModel", "SiglipVisionConfig", dict(SIZES, image_size=12, patch_size=4)),
    "clip_1": ("CLIPModel", "CLIPConfig", dict(text_config=CLIP_TEXT, vision_config=dict(SIZES, image_size=12, patch_size=4,
                                                                                       projection_dim=10), projection_dim=10)),
}


SIGLIP_TEXT = dict(SIZES, vocab_size=41, max_position_embeddings=9, pad_token_id=1, bos_token_id=None, eos_token_id=None)
MODELS["siglip_2"] = ("SiglipModel", "SiglipConfig", dict(text_config=dict(SIGLIP_TEXT, hidden_size=20, num_attention_heads=2, projection_size=24),
                                                        vision_config=dict(SIZES, image_size=12, patch_size=4)))

# What a processor does, for folders whose images are seen by a test.
PROCESSORS = {
    "vit_1": dict(image_processor_type="ViTImageProcessor", size=dict(height=16, width=16)),
    "siglip_2": dict(image_processor_type="SiglipImageProcessor", size=dict(height=12, width=12)),
    "clip_1": dict(image_processor_type="CLIPImageProcessor", size=dict(shortest_edge=12), crop_size=dict(height=12, width=12)),
}


# ---- Random models ------------------------------------------------------------------------------------------------------------------

def draw_sizes(draw):
    heads = draw.choice([1, 2, 3])
    patch = draw.choice([2, 4, 5, 8])
    return dict(hidden_size=4 * heads * draw.choice([2, 3, 5]), num_hidden_layers=draw.choice([1, 2, 3]), num_attention_heads=heads,
                intermediate_size=draw.choice([13, 32, 40]), image_size=patch * draw.choice([1, 2, 3, 5]) + draw.choice([0, 0, 1]),
                patch_size=patch, hidden_act=draw.choice(["gelu", "gelu", "relu", "gelu_new", "quick_gelu", "silu"]),
                layer_norm_eps=draw.choice([1e-5, 1e-6, 1e-12, 1e-3]))


def draw_labels(draw):
    n = draw.choice([1, 2, 3, 7])
    names = {i: f"label {i}" for i in range(n)}
    return dict(id2label=names, label2id={v: k for k, v in names.items()})


def draw_vit(draw, kind="ViT"):
    task = draw.choice(["Model", "ForImageClassification"] + (["ForImageClassificationWithTeacher"] if kind == "DeiT" else []))
    return f"{kind}{task}", f"{kind}Config", dict(draw_sizes(draw), qkv_bias=draw.random() < 0.7, **draw_labels(draw))


def draw_dino2(draw, kind="Dinov2", **more):
    task = draw.choice(["Model", "ForImageClassification"])
    fields = dict(draw_sizes(draw), mlp_ratio=draw.choice([1, 2, 4]), use_swiglu_ffn=draw.random() < 0.4,
                  qkv_bias=draw.random() < 0.7, **draw_labels(draw), **more)
    return f"{kind}{task}", f"{kind}Config", fields


def draw_registers(draw):
    return draw_dino2(draw, "Dinov2WithRegisters", num_register_tokens=draw.choice([0, 1, 4]))


def draw_dino3(draw):
    fields = dict(draw_sizes(draw), num_register_tokens=draw.choice([0, 1, 4]), use_gated_mlp=draw.random() < 0.5,
                  key_bias=draw.random() < 0.3, proj_bias=draw.random() < 0.7, mlp_bias=draw.random() < 0.7,
                  rope_theta=draw.choice([100.0, 17.0]))
    return "DINOv3ViTModel", "DINOv3ViTConfig", fields


def draw_siglip(draw):
    fields = draw_sizes(draw)
    kind = draw.choice(["SiglipVisionModel", "SiglipModel", "SiglipModel", "SiglipForImageClassification"])
    if kind == "SiglipVisionModel":
        return kind, "SiglipVisionConfig", dict(fields, vision_use_head=draw.random() < 0.8)
    if kind == "SiglipModel":
        width = draw.choice([fields["hidden_size"], 20])
        text = dict(SIGLIP_TEXT, hidden_size=width, num_attention_heads=1, num_hidden_layers=draw.choice([1, 2]),
                    max_position_embeddings=draw.choice([9, 16]), projection_size=fields["hidden_size"])
        return kind, "SiglipConfig", dict(vision_config=fields, text_config=text)
    return kind, "SiglipConfig", dict(vision_config=fields, text_config=dict(SIZES, vocab_size=30, max_position_embeddings=8), **draw_labels(draw))


def draw_clip(draw):
    joint, fields = draw.choice([6, 10]), draw_sizes(draw)
    kind = draw.choice(["CLIPModel", "CLIPModel", "CLIPVisionModel", "CLIPVisionModelWithProjection", "CLIPForImageClassification"])
    if "Vision" in kind:
        return kind, "CLIPVisionConfig", dict(fields, projection_dim=joint)
    eos = draw.choice([40, 40, 2])
    text = dict(CLIP_TEXT, projection_dim=joint, eos_token_id=eos, hidden_size=16 * draw.choice([1, 2]),
                num_hidden_layers=draw.choice([1, 2]))
    labels = draw_labels(draw) if kind == "CLIPForImageClassification" else {}
    return kind, "CLIPConfig", dict(text_config=text, vision_config=dict(fields, projection_dim=joint), projection_dim=joint, **labels)


KINDS = {"vit": draw_vit, "deit": lambda draw: draw_vit(draw, "DeiT"), "dinov2": draw_dino2, "registers": draw_registers,
         "dinov3": draw_dino3, "siglip": draw_siglip, "clip": draw_clip}


# ---- Models -------------------------------------------------------------------------------------------------------------------------

def randomize(model, generator):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if name.endswith("logit_scale"):
                value = torch.full_like(noise, 2.5)
            elif name.endswith("logit_bias"):
                value = torch.full_like(noise, -3)
            elif "norm" in name and name.endswith("weight") or "layer_scale" in name:
                value = 1 + 0.2 * noise
            elif parameter.dim() == 1 or any(word in name for word in ("token", "position", "probe", "class_embedding")):
                value = 0.4 * noise
            else:
                value = noise / parameter[0].numel() ** 0.5
            parameter.copy_(value.float().double())


def make_model(kind, config, fields, generator):
    made = getattr(t, config)(**fields)
    made._attn_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    model = getattr(t, kind)(made)
    model.set_attn_implementation("eager")
    model = model.double().eval()
    torch.set_default_dtype(F32)
    randomize(model, generator)
    return model


def as_stored(model):
    """Tensors as save_pretrained names and shapes them."""
    with tempfile.TemporaryDirectory() as place:
        copy.deepcopy(model).to(F32).save_pretrained(place)
        config = pathlib.Path(place, "config.json").read_text()
        return load_file(pathlib.Path(place, "model.safetensors")), config


def vision_config(model):
    return getattr(model.config, "vision_config", model.config)


def make_images(model, generator, any_sizes):
    config = vision_config(model)
    size, patch = config.image_size, config.patch_size
    shapes = [(size, size, 0), (size, size, 0)]
    if any_sizes:
        shapes += [(2 * patch + 1, 3 * patch, 1), (size + patch, patch, 1)]
    return [(torch.randn(3, h, w, generator=generator), any_size) for h, w, any_size in shapes]


def run_image(model, pixels, any_size):
    """Hidden states (the last one is last_hidden_state), attentions, pooled, the output itself."""
    kind = type(model).__name__
    tower = next((getattr(model, n) for n in ("vit", "deit", "dinov2", "dinov2_with_registers", "vision_model") if hasattr(model, n)), model)
    options = dict(output_hidden_states=True, output_attentions=True)
    family = kind.lower()
    if any_size and not family.startswith("dino"):
        options["interpolate_pos_encoding"] = True
    kept = {}
    hook = tower.register_forward_hook(lambda _, __, out: kept.update(out=out), always_call=False)
    whole = model.get_image_features if kind in ("CLIPModel", "SiglipModel") else model
    out = whole(pixel_values=pixels[None].double(), **options)
    hook.remove()
    base = kept["out"]
    hidden = list(base.hidden_states[:-1]) + [base.last_hidden_state]
    pooled = base.pooler_output
    if pooled is None and kind.startswith(("ViT", "DeiT")):
        pooled = base.last_hidden_state[:, 0]
    return hidden, base.attentions, pooled, out


def forward_images(model, images):
    made = {}
    outs = [run_image(model, *image) for image in images]
    for layer in range(len(outs[0][0])):
        made[f"hidden.{layer}"] = torch.cat([o[0][layer][0] for o in outs])
    for layer in range(len(outs[0][1])):
        made[f"weights.{layer}"] = torch.cat([o[1][layer].flatten() for o in outs])
    if outs[0][2] is not None:
        pooled = [o[2] for o in outs]
        kind = type(model).__name__
        if kind == "CLIPModel":
            made["joint"] = torch.cat([model.visual_projection(model.vision_model.post_layernorm(o[0][-1][:, 0])) for o in outs])
            pooled = [model.vision_model.post_layernorm(o[0][-1][:, 0]) for o in outs]
        if kind == "SiglipModel":
            made["joint"] = torch.cat(pooled)
        if kind == "CLIPVisionModelWithProjection":
            made["joint"] = torch.cat([o[3].image_embeds for o in outs])
        made["pooled"] = torch.cat(pooled)
    if hasattr(outs[0][3], "logits"):
        made["logits"] = torch.cat([o[3].logits for o in outs])
    return made


def forward_texts(model, joints, generator):
    config = model.config.text_config
    is_siglip = type(model).__name__ == "SiglipModel"
    lengths = [config.max_position_embeddings, 3, 1, 7] if is_siglip else [5, 12, 1, 7]
    texts = [torch.randint(3, config.vocab_size - 1, (n,), generator=generator) for n in lengths]
    if is_siglip:
        texts[0][4:] = config.pad_token_id  # the others are not filled up, which is allowed
    else:
        texts[0][3], texts[1][11], texts[3][2] = 40, 40, 40
    if config.eos_token_id == 2:
        texts[1][4] = 2
    outs = [model.text_model(input_ids=ids[None], output_hidden_states=True, output_attentions=True) for ids in texts]
    made = {"text_ids": torch.cat(texts).int(), "text_lengths": torch.tensor(lengths).int()}
    for layer in range(len(outs[0].hidden_states)):
        hidden = [o.hidden_states[layer][0] if layer + 1 < len(o.hidden_states) else o.last_hidden_state[0] for o in outs]
        made[f"text_hidden.{layer}"] = torch.cat(hidden)
    for layer in range(len(outs[0].attentions)):
        made[f"text_weights.{layer}"] = torch.cat([o.attentions[layer].flatten() for o in outs])
    made["text_pooled"] = torch.cat([o.last_hidden_state[:, -1] if is_siglip else o.pooler_output for o in outs])
    made["text_joint"] = torch.cat([o.pooler_output for o in outs]) if is_siglip else model.text_projection(made["text_pooled"])
    normal = [x / x.norm(dim=-1, keepdim=True) for x in (joints, made["text_joint"])]
    made["match"] = model.logit_scale.exp() * normal[0] @ normal[1].T + (model.logit_bias if is_siglip else 0)
    return made


def gradients(model, images, generator):
    own = torch.stack([pixels for pixels, any_size in images if not any_size]).double()
    n_labels = model.config.num_labels
    labels = torch.randint(0, n_labels, (len(own),), generator=generator)
    loss = torch.nn.functional.cross_entropy(model(pixel_values=own).logits, labels)
    loss.backward()
    holder = copy.deepcopy(model)
    with torch.no_grad():
        for to, parameter in zip(holder.parameters(), model.parameters()):
            to.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    return {"labels": labels.int(), "loss": loss}, holder


def effects(model, pixels):
    heads = vision_config(model).num_attention_heads
    outputs = [m for n, m in model.named_modules() if "layer" in n and n.endswith(("attention.o_proj", "self_attn.out_proj"))]
    width = outputs[0].in_features // heads
    every = [(layer, head) for layer in range(len(outputs)) for head in range(heads)]
    rows = []
    for ablated in [[], *([one] for one in every), every[:heads], [every[0], every[-1]]]:

        def hook(_, inputs, layer=None, ablated=ablated):
            x = inputs[0].clone()
            for at, head in ablated:
                if at == layer:
                    x[..., head * width : (head + 1) * width] = 0
            return (x, *inputs[1:])

        hooks = [m.register_forward_pre_hook(functools.partial(hook, layer=i)) for i, m in enumerate(outputs)]
        logits = model(pixel_values=pixels[None].double()).logits[0]
        rows.append(logits.log_softmax(-1) if len(logits) > 1 else torch.nn.functional.logsigmoid(logits))
        for one in hooks:
            one.remove()
    return torch.stack(rows)


# Of SigLIP's tokenizer: what is dropped, what becomes lower case, what is white space, special tokens written out.
TEXTS = ["", "two red boats", "Two RED Boats!", "  a boat ", "a - b", "don't", "...", "\u1f48\u03a3 \u03a3\u0391\u03a3", "\u0130", "a\u2581b", "a\u2003b\n",
         "boat</s>", "</s> boat", "a <unk> b", "\u65e5\u672c", "\u2160\ufb01\u2026", "x" * 40]


def make_pieces(folder, model):
    """SigLIP's tokenizer, the ids of TEXTS by it, and how well some match a white image; needs sentencepiece."""
    import sentencepiece

    lines = ["two red boats", "a boat", "one blue tree", "three yellow balls", "red trees and boats"] * 20
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place, "lines").write_text("\n".join(lines))
        sentencepiece.SentencePieceTrainer.train(
            input=f"{place}/lines", model_prefix=f"{place}/spiece", vocab_size=model.config.text_config.vocab_size, model_type="unigram",
            hard_vocab_limit=False, unk_id=2, eos_id=1, pad_id=0, bos_id=-1, normalization_rule_name="identity", minloglevel=2, num_threads=1)
        tokenizer = t.SiglipTokenizer(f"{place}/spiece.model", model_max_length=model.config.text_config.max_position_embeddings)
    tokenizer.save_pretrained(folder)
    asked = [text for text in TEXTS if 2 <= len(tokenizer(text)["input_ids"]) <= tokenizer.model_max_length]
    ids = tokenizer(asked, padding="max_length", return_tensors="pt")["input_ids"]
    pixels = torch.ones(1, 3, *[model.config.vision_config.image_size] * 2, dtype=torch.float64)
    chances = model(input_ids=ids, pixel_values=pixels).logits_per_image[0].sigmoid()
    made = dict(texts=[[text, tokenizer(text)["input_ids"]] for text in TEXTS], matches=list(zip(asked, chances.tolist())))
    (folder / "texts.json").write_text(json.dumps(made, indent=1) + "\n")


def make(folder, kind, config, fields, seed, any_sizes=True):
    generator = torch.Generator().manual_seed(seed)
    with double():
        model = make_model(kind, config, fields, generator)
        images = make_images(model, generator, any_sizes)
        made = forward_images(model, images)
        if kind in ("CLIPModel", "SiglipModel"):
            made |= forward_texts(model, made["joint"], generator)
        if "logits" in made:
            made["effects"] = effects(model, images[0][0])
        losses, holder = gradients(model, images, generator) if "logits" in made and model.config.num_labels > 1 else ({}, None)
    folder.mkdir(parents=True, exist_ok=True)
    stored, text = as_stored(model)
    made |= losses
    if holder is not None:
        made |= {f"grad.{n}": x for n, x in as_stored(holder)[0].items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(text)
    if kind == "SiglipModel":
        make_pieces(folder, model)
    if kind == "CLIPModel":
        (folder / "vocab.txt").write_text("\n".join(vocabulary(model.config.text_config.vocab_size)) + "\n")
    made |= {f"image.{i}": pixels for i, (pixels, _) in enumerate(images)}
    made["any_size"] = torch.tensor([any_size for _, any_size in images]).int()
    versions = f"torch {torch.__version__}, transformers {t.__version__}"
    save_file({n: x.detach().to(x.dtype if x.dtype == torch.int32 else F32).contiguous().clone() for n, x in made.items()},
              folder / "expected.safetensors", metadata={"made_with": versions})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--random", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    t.logging.set_verbosity_error()
    t.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in options.names or (() if options.random else MODELS):
        make(options.root / name, *MODELS[name], seed=sum(map(ord, name)))
        if name in PROCESSORS:
            (options.root / name / "preprocessor_config.json").write_text(json.dumps(PROCESSORS[name], indent=2, sort_keys=True) + "\n")
    if not options.random:
        return
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    print(f"seed {seed}")
    kinds = options.kinds.split(",")
    for i in range(options.random):
        name = kinds[i % len(kinds)]
        draw = random.Random(f"{seed}-{i}-{name}")
        drawn = KINDS[name](draw)
        print(i, name, json.dumps(drawn, default=str), flush=True)
        make(options.root / f"{seed}-{i}-{name}", *drawn, seed=draw.getrandbits(40))


if __name__ == "__main__":
    sys.exit(main())
