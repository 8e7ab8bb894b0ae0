#!/usr/bin/env python3
"""Makes the goldens of chat templates: what transformers writes of a turn of the user, by templates that are known here and by others.

    python3 tools/chat_cases.py tests/golden/chat.json   needs transformers

The templates are as short as can be: a loop over messages with the expression by which each kind is recognised, in the spellings that model
files have. A case is {"kind", "template", "text", "want"}; kind "" is one that must not be recognised, and has no want.
"""
import json
import sys

import transformers
from transformers.utils.chat_template_utils import render_jinja_template

LOOP = "{% for message in messages %}"
ASK = "{% if add_generation_prompt %}"
END = "{% endif %}"
IM, IM_ASK = "'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'", "'<|im_start|>assistant\\n'"
SYSTEM = "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\nBe \\'good\\'.\\n<|im_end|>\\n' }}{% endif %}"
LLAMA3 = "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>'"
LLAMA3_ASK = "'<|start_header_id|>assistant<|end_header_id|>\n\n'"
GEMMA = "'<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n'"
ROLE = "{% set role = message.role %}"


def chat(turn, ask=None, before="", after=""):
    return before + LOOP + after + "{{ " + turn + " }}{% endfor %}" + (ASK + "{{ " + ask + " }}" + END if ask else "")


def inst(text):
    return "{%- for message in messages %}\n    {%- if message['role'] == 'user' %}\n        {{- " + text + " }}\n    {%- endif %}\n{%- endfor %}\n"


KNOWN = [
    ("chatml", chat(IM, IM_ASK)),
    ("chatml", chat(IM, IM_ASK, SYSTEM)),
    ("chatml", chat(IM.replace("['role']", ".role").replace("['content']", ".content").replace("'", '"'), IM_ASK.replace("'", '"'))),
    ("chatml", chat("'<|im_start|>user\\n' + message.content + '<|im_end|>\\n'", "'<|im_start|>assistant\\n<think>\\n'")),
    ("chatml", "{# a comment with {{ tags }} #}\n" + LOOP + "\n    {%- set content = message.content %}\n    {{- "
     + IM.replace("message['content']", "content") + " }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- " + IM_ASK
     + " }}\n    {%- if enable_thinking is defined %}\n        {{- '<think>' }}\n    {%- endif %}\n{%- endif %}"),
    ("gemma", chat(GEMMA, "'<start_of_turn>model\\n'", "{{ bos_token }}", ROLE)),
    ("gemma", "{{ bos_token }}\n{%- set first_user_prefix = '' -%}\n{%- for message in messages -%}\n    {%- set role = message.role -%}\n"
     "    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else \"\") }}\n    {%- if message['content'] is string -%}\n"
     "        {{ message['content'] | trim }}\n    {%- endif -%}\n    {{ '<end_of_turn>\n' }}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n"
     "    {{'<start_of_turn>model\n'}}\n{%- endif -%}\n"),
    ("llama2", "{% set system_message = false %}" + chat("bos_token + '[INST] ' + content.strip() + ' [/INST]'", None, "",
                                                         "{% set content = message['content'] %}")),
    ("llama3", LOOP + "{% set content = " + LLAMA3 + " %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
     "{% endfor %}" + ASK + "{{ " + LLAMA3_ASK + " }}" + END),
    ("llama3", "{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- set date_string = \"26 Jul 2024\" %}\n{%- endif %}\n"
     "{%- set system_message = \"\" %}\n{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}\n"
     "{{- \"Cutting Knowledge Date: December 2023\\n\" }}\n{{- \"Today Date: \" + date_string + \"\\n\\n\" }}\n{{- system_message }}\n"
     "{{- \"<|eot_id|>\" }}\n\n{%- for message in messages %}\n    {{- " + LLAMA3 + " }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- " + LLAMA3_ASK
     + " }}\n{%- endif %}\n"),
    ("mistral", "{{ bos_token }}" + inst("'[INST] ' + message['content'] + ' [/INST]'")),
    ("mistral-v1", "{{- bos_token }}\n" + inst("\" [INST] \" + message[\"content\"] + \" [/INST]\"")),
    ("mistral-v3", "{{- bos_token }}\n" + inst("\"[INST] \" + message[\"content\"] + \"[/INST]\"")),
    ("mistral-tekken", "{{- bos_token }}\n" + inst("'[INST]' + message['content'] + '[/INST]'")),
    ("phi3", chat("'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + '<|assistant|>' + '\n'", None, "{{ bos_token }}")),
    ("phi3", chat("'<|user|>\n' + message['content'] + '<|end|>\n'", "'<|assistant|>\n'")),
    ("zephyr", LOOP + "\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n{% endif %}\n"
     "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"),
]

OTHERS = [
    "", "{", "{{", "{{ '", "{%", "{#", "{{ 'a", "{{ 'a\\", "plain text",
    chat("message['role'] + ': ' + message['content']"),
    chat("'<|im_start|>' + message['role'] + ' ' + message['content'] + '<|im_end|>' + '\\n'", IM_ASK),
    chat(IM, "'<|im_start|>assistant '"),
    chat(IM),
    chat(IM + " ~ 'x'", IM_ASK),
    chat("'x' ~ " + IM, IM_ASK),
    LOOP + "{{ " + IM + " }}\nx{% endfor %}" + ASK + "{{ " + IM_ASK + " }}" + END,
    LOOP + "{{ " + IM + " }}\n{% endfor %}" + ASK + "{{ " + IM_ASK + " }}" + END,
    LOOP + "  {{ " + IM + " }}{% endfor %}" + ASK + "{{ " + IM_ASK + " }}" + END,
    chat(IM, IM_ASK, "{% set system_message = 'Be good.' %}"),
    chat(IM, IM_ASK, "{{ '<|im_start|>system\\nA tool: ' + tool + '<|im_end|>\\n' }}"),
    chat(IM, IM_ASK, "{% set today = strftime_now('%d') %}"),
    chat(GEMMA, "'<start_of_turn>model\\n'", "{{ bos_token }}\n{{ 'x' }}", ROLE),
    chat("'<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else '')", "'<start_of_turn>model\\n'", "", ROLE),
    chat(LLAMA3, LLAMA3_ASK, "{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}"),
    chat("'<|user|>\n' + message['content'] + eos_token", "'<|assistant|>'"),
    "{{ bos_token }}\n" + chat(IM, IM_ASK), "x" + chat(IM, IM_ASK), chat(IM, IM_ASK) + "\n\n\n",
]

TEXTS = ["Hello", " \u2003\n two\nlines\x1f ", "", "a </s> {{ x }} 'b'"]


def main():
    cases = [{"kind": kind, "template": template, "text": text,
              "want": render_jinja_template([[{"role": "user", "content": text}]], chat_template=template, add_generation_prompt=True,
                                            bos_token="<s>", eos_token="</s>")[0][0]}
             for kind, template in KNOWN for text in TEXTS]
    cases += [{"kind": "", "template": template, "text": "Hello"} for template in OTHERS]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"transformers": transformers.__version__, "cases": cases}, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
