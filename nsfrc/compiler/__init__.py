"""The compiler: text → `ir.Program` → `GroundProgram` → `Plan`. Nothing in here imports torch or numba.

`stages` is the whole of it on a page; the modules it calls are named after what they make or do.
"""
