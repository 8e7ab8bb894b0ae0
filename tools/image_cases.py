#!/usr/bin/env python3
"""Makes the goldens of images: small PNG and JPEG files, what torchvision reads of them, and what transformers' image
processors make of them.

    python3 tools/image_cases.py tests/golden/image    needs numpy, Pillow, torch, torchvision, transformers, on a
                                                       processor with AVX2

files/ has the images; ycck.jpg and cmyk_plain.jpg (without Adobe's marker), which Pillow cannot write, are by libjpeg-turbo. decoded.npz: of each file [height, width, 3], as torchvision.io.decode_image reads it with the
orientation applied. resized.npz: "FILTER HxW HxW" is what torchvision's resize makes of a pattern of the first size, which
test_image.c knows, in the second. prepared.npz: "NAME FILE" is pixel_values of processors/NAME.json. The committed ones are
of torch 2.15.0, torchvision 0.29.2, transformers 5.24.0, Pillow 13.0.0 and numpy 2.4.6.
"""
import json
import pathlib
import struct
import sys
import zlib

import numpy as np
import torch
import transformers
from PIL import Image
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

FILTERS = {1: InterpolationMode.LANCZOS, 2: InterpolationMode.BILINEAR, 3: InterpolationMode.BICUBIC,
           0: InterpolationMode.NEAREST_EXACT}
SIZES = [((31, 23), (8, 9)), ((9, 40), (21, 13)), ((5, 7), (23, 19)), ((1, 1), (4, 6)), ((64, 3), (2, 3)), ((12, 12), (12, 5)),
         ((3, 200), (7, 3))]


def content(height, width, channels, seed):
    """Waves, so that what is wrong by a pixel is wrong everywhere, and a corner of noise."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 120 * np.sin(0.31 * y * (c + 1) + 0.17 * x + c + seed) for c in range(channels)]
    made = np.stack(waves, -1).astype(np.uint8)
    random = np.random.default_rng(seed)
    made[:height // 3, :width // 3] = random.integers(0, 256, made[:height // 3, :width // 3].shape)
    return made


def pattern(height, width):
    """test_image.c has the same."""
    i = np.arange(height * width * 3, dtype=np.uint64)
    return ((i * 2654435761 % 2**32) >> 24).astype(np.uint8).reshape(height, width, 3)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(height, width, depth, color, lines, *others, interlace=0):
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(others) + chunk(b"IDAT", zlib.compress(lines, 9)) +
            chunk(b"IEND", b""))


def adam7(pixels):
    """The lines of the seven passes, without filters."""
    out = b""
    for y, x, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = pixels[y::dy, x::dx]
        if part.size:
            out += b"".join(b"\0" + line.tobytes() for line in part)
    return out


def exif(orientation):
    made = Image.Exif()
    made[0x10E] = "about"
    made[0x112] = orientation
    return made


def save_files(folder):
    def save(image, name, **options):
        image.save(folder / name, **options)

    h, w = 19, 26
    for mode, channels in (("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4)):
        pixels = content(h, w, channels, channels)
        save(Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode), f"{mode}.png")
    rgb = Image.fromarray(content(h, w, 3, 7))
    for n in (2, 4, 16, 200):
        save(rgb.quantize(n), f"palette_{n}.png")
    save(rgb.quantize(9), "palette_clear.png", transparency=3)
    save(rgb.convert("1"), "bits.png")
    save(rgb.convert("L"), "grey_clear.png", transparency=9)
    (folder / "interlaced.png").write_bytes(png(h, w, 8, 2, adam7(content(h, w, 3, 11)), interlace=1))
    grey = content(3, 5, 1, 2)[..., 0] >> 4
    lines = b"".join(b"\0" + bytes([r[0] << 4 | r[1], r[2] << 4 | r[3], r[4] << 4]) for r in grey)
    (folder / "grey_4.png").write_bytes(png(3, 5, 4, 0, lines, chunk(b"gAMA", struct.pack(">I", 45455)), chunk(b"tEXt", b"a\0b")))
    save(Image.fromarray(content(1, 1, 3, 1)), "one.png")
    for o in (2, 5, 8):
        save(rgb, f"turned_{o}.png", exif=exif(o))
    for o in range(1, 10):
        save(rgb, f"turned_{o}.jpg", exif=exif(o), quality=70)
    for s in (0, 1, 2):
        save(rgb, f"subsampled_{s}.jpg", subsampling=s, quality=60 + 10 * s)
    save(rgb, "progressive.jpg", progressive=True, quality=80)
    save(rgb, "restarts.jpg", restart_marker_blocks=2)
    save(rgb.convert("L"), "grey.jpg", quality=50)
    save(Image.fromarray(content(h, w, 4, 5), "CMYK"), "cmyk.jpg")
    save(Image.fromarray(content(1, 1, 3, 4)), "one.jpg")


def processors():
    small = {"size": {"height": 12, "width": 14}}
    edge = {"size": {"shortest_edge": 13}, "crop_size": {"height": 10, "width": 11}}
    hub = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    vit, clip = "ViTImageProcessor", "CLIPImageProcessor"
    return {
        "vit": {"image_processor_type": vit, **small},
        "vit_old": {"feature_extractor_type": "ViTFeatureExtractor", "size": 11, "resample": 2, "do_normalize": True},
        "deit": {"image_processor_type": "DeiTImageProcessor", "size": 16, "crop_size": 12, **hub},
        "clip": {"image_processor_type": clip, **edge},
        "clip_old": {"feature_extractor_type": "CLIPFeatureExtractor", "size": 12, "crop_size": 12, "resample": 3},
        "dinov2": {"image_processor_type": "BitImageProcessor", "do_convert_rgb": True, "rescale_factor": 0.00392156862745098,
                   "resample": 3, **edge, **hub},
        "siglip": {"image_processor_type": "SiglipImageProcessor", **small},
        "siglip_edge": {"image_processor_type": "SiglipImageProcessor", "size": 9, "do_center_crop": True, "crop_size": [8, 9]},
        "dinov3": {"image_processor_type": "DINOv3ViTImageProcessorFast", **small},
        "lanczos": {"image_processor_type": vit, **small, "resample": 1},
        "nearest": {"image_processor_type": vit, **small, "resample": 0},
        "padded": {"image_processor_type": clip, "size": {"shortest_edge": 7}, "crop_size": {"height": 9, "width": 12}},
        "plain": {"image_processor_type": vit, "do_resize": False, "do_rescale": False, "image_mean": 100.0, "image_std": 2.5},
        "rescaled": {"image_processor_type": vit, **small, "do_normalize": False, "rescale_factor": 1 / 127.5},
        "nested": {"image_processor": {"image_processor_type": clip, **edge}, "processor_class": "CLIPProcessor"},
    }


def resized():
    made = {}
    for (filter_id, filter_), (a, b) in ((f, s) for f in FILTERS.items() for s in SIZES):
        image = torch.from_numpy(pattern(*a)).permute(2, 0, 1).contiguous()
        out = F.resize(image, list(b), interpolation=filter_, antialias=True)
        made["%d %dx%d %dx%d" % (filter_id, *a, *b)] = out.permute(1, 2, 0).numpy()
    return made


def main(root):
    transformers.utils.logging.set_verbosity_error()
    root = pathlib.Path(root)
    for name in ("files", "processors"):
        (root / name).mkdir(parents=True, exist_ok=True)
    save_files(root / "files")
    decoded, prepared = {}, {}
    for path in sorted((root / "files").iterdir()):
        decoded[path.name] = decode_image(str(path), ImageReadMode.RGB, apply_exif_orientation=True).permute(1, 2, 0).numpy()
    for name, config in processors().items():
        (root / "processors" / f"{name}.json").write_text(json.dumps(config, indent=2) + "\n")
        inner = config.get("image_processor", config)
        kind = inner.get("image_processor_type", inner.get("feature_extractor_type", "")).replace("FeatureExtractor", "ImageProcessor")
        options = {k: v for k, v in inner.items() if not k.endswith("_type")}
        processor = getattr(transformers, kind.removesuffix("Fast"))(**options)
        for file in ("RGB.png", "turned_6.jpg", "one.png"):
            image = processor.fetch_images(str(root / "files" / file))
            prepared[f"{name} {file}"] = processor(image, return_tensors="np")["pixel_values"][0]
    np.savez_compressed(root / "decoded.npz", **decoded)
    np.savez_compressed(root / "resized.npz", **resized())
    np.savez_compressed(root / "prepared.npz", **prepared)


if __name__ == "__main__":
    main(sys.argv[1])
