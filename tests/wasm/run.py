#!/usr/bin/env python3
"""run.py PROGRAM.wasm ARGS…: a program of WASI in wasmtime (of PyPI), with no files. Its exit status."""
import sys

from wasmtime import Engine, ExitTrap, Linker, Module, Store, WasiConfig

engine = Engine()
store, linker, config = Store(engine), Linker(engine), WasiConfig()
config.argv = sys.argv[1:]
config.inherit_stdout()
config.inherit_stderr()
store.set_wasi(config)
linker.define_wasi()
program = linker.instantiate(store, Module.from_file(engine, sys.argv[1]))
try:
    program.exports(store)["_start"](store)
except ExitTrap as ended:
    sys.exit(ended.code)
