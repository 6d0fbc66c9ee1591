"""Benchmarks of Minute8: each figure is next to that of a simple alternative. `python -m scripts.benchmarks` lists
them.

A benchmark is a module with `run(scale) -> Result`; `scale` 1 is the size that docs/performance.md reports.
"""
