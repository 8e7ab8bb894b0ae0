"""The cell of a notebook in headless Chromium, without a network: nothing is asked for, and nothing is reported."""
import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "playwright")):
    raise unittest.SkipTest("torch, transformers or playwright is not installed")
if not pathlib.Path("/usr/bin/chromium").exists():
    raise unittest.SkipTest("/usr/bin/chromium is not there")

import torch
import transformers
from pace import PATIENCE
from playwright.sync_api import sync_playwright

import qkv

N_TOKENS, N_HEADS, LARGEST = 128, 144, 2_000_000


def cell_of_many_heads():
    """What a cell of 12 layers with 12 heads on 128 tokens holds."""
    torch.manual_seed(3)
    config = transformers.BertConfig(vocab_size=99, hidden_size=768, intermediate_size=64)
    model = transformers.BertModel(config).eval()
    with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()), qkv.inspect(model, keep="qk") as seen:
        model(torch.randint(3, 99, (1, N_TOKENS)))
    return seen.page()._repr_html_()


class Cell(unittest.TestCase):
    def test_offline(self):
        cell = cell_of_many_heads()
        self.assertLessEqual(len(cell.encode()), LARGEST)
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
            path = pathlib.Path(folder, "cell.html")
            path.write_text(f"<!doctype html><meta charset=utf-8><title>A cell</title>{cell}", encoding="utf-8")
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"],
                                                 timeout=1000 * PATIENCE)
            context = browser.new_context(viewport={"width": 1280, "height": 1200})
            context.set_offline(True)
            context.set_default_timeout(1000 * PATIENCE)
            tab, errors, asked = context.new_page(), [], []
            tab.on("pageerror", lambda error: errors.append(str(error)))
            tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            tab.on("request", lambda request: asked.append(request.url))
            tab.goto(path.as_uri())
            overview, page = tab.main_frame.child_frames
            self.assertEqual(overview.locator("figure").count(), N_HEADS)
            page.locator("svg[role=img], canvas").first.wait_for()
            box = page.locator("#panel").bounding_box()
            self.assertGreater(box["width"] * box["height"], 100_000)
            page.locator("body").press("ArrowRight")
            tab.screenshot(path=str(pathlib.Path(folder, "cell.png")))
            self.assertGreater(pathlib.Path(folder, "cell.png").stat().st_size, 20_000)
            browser.close()
        self.assertEqual(errors, [])
        self.assertEqual([url for url in asked if url != path.as_uri() and not url.startswith(("about:", "data:"))], [])


if __name__ == "__main__":
    unittest.main()
