"""Minute8 measured, each figure next to what one would otherwise do: `python -m benchmarks` lists them.

A benchmark is a module with `run(scale) -> Result`; `scale` 1 is the size that docs/performance.md reports.
"""
