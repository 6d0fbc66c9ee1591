"""The tables that other projects wrote, as facts, and what we answer to each of them."""
